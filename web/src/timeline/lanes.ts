// Where each lane lies: ranks one below the other, each with a heading and its lanes below it; a folded rank is only its
// heading, in which the outermost slices of its busiest stream are drawn; a folded lane is one row.
import type { Lane, TimelineIndex } from "../data/server";

export const ROW = 18;
export const HEADING = 24;
const GAP = 5;
const COUNTER_ROWS = 2;

export interface Band {
  kind: "rank" | "lane";
  rank: number; // index into the ranks
  lane: Lane | null; // what is drawn in it
  top: number;
  height: number; // without the gap below
  rows: number; // that are drawn; deeper ones are left out
  folded: boolean;
}

export interface Layout {
  bands: Band[];
  ofLane: Map<number, Band>; // where a lane is to be seen: its own band, or its rank's heading where that is folded
  height: number;
}

export interface Folded {
  ranks: Set<number>;
  lanes: Set<number>;
}

/** What has a heading: the ranks, and behind them the machine, where something was sampled of it. */
export function headings(index: TimelineIndex): number[] {
  return [...new Set(index.lanes.map((lane) => lane.rank))];
}

/** With many ranks only the first is unfolded: the others are one line each, and so is the machine. */
export function foldedAtFirst(index: TimelineIndex): Folded {
  const many = index.ranks.length > 8;
  const unfolded = (at: number) => index.ranks[at] !== undefined && (!many || index.ranks[at].rank === index.ranks[0]!.rank); // and its prediction
  return { ranks: new Set(headings(index).filter((at) => !unfolded(at))), lanes: new Set() };
}

export function holdsSlices(lane: Lane): boolean {
  return lane.kind !== "counter";
}

export function busiest(lanes: Lane[]): Lane | null {
  const streams = lanes.filter((lane) => lane.kind === "stream");
  return (streams.length > 0 ? streams : lanes.filter(holdsSlices)).reduce<Lane | null>((most, lane) => (most === null || lane.slices > most.slices ? lane : most), null);
}

export function layOut(index: TimelineIndex, folded: Folded): Layout {
  const byRank = new Map<number, Lane[]>();
  for (const lane of index.lanes) {
    const lanes = byRank.get(lane.rank);
    if (lanes) lanes.push(lane);
    else byRank.set(lane.rank, [lane]);
  }
  const bands: Band[] = [];
  const ofLane = new Map<number, Band>();
  let top = 0;
  for (const [rank, lanes] of byRank) {
    const closed = folded.ranks.has(rank);
    const heading: Band = { kind: "rank", rank, lane: closed ? busiest(lanes) : null, top, height: HEADING, rows: 1, folded: closed };
    bands.push(heading);
    top += HEADING + 1;
    for (const lane of lanes) {
      if (closed) {
        ofLane.set(lane.id, heading);
        continue;
      }
      const short = folded.lanes.has(lane.id);
      const rows = short ? 1 : holdsSlices(lane) ? Math.max(1, lane.rows) : COUNTER_ROWS;
      const band: Band = { kind: "lane", rank, lane, top, height: rows * ROW, rows, folded: short };
      bands.push(band);
      ofLane.set(lane.id, band);
      top += rows * ROW + GAP;
    }
    if (!closed) top += GAP;
  }
  return { bands, ofLane, height: top };
}

/** The bands that are seen from `from` to `to`, by bisection: there may be thousands. */
export function bandsBetween(layout: Layout, from: number, to: number): Band[] {
  const { bands } = layout;
  let low = 0;
  let high = bands.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bands[middle]!.top + bands[middle]!.height < from) low = middle + 1;
    else high = middle;
  }
  const seen: Band[] = [];
  for (let i = low; i < bands.length && bands[i]!.top < to; i++) seen.push(bands[i]!);
  return seen;
}

export function rowTop(band: Band, row: number): number {
  return band.kind === "rank" ? band.top + (HEADING - ROW) / 2 : band.top + row * ROW;
}
