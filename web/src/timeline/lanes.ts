// Where each lane lies: ranks one below the other, each with a heading and its lanes below it; a folded rank is only its
// heading, in which the outermost slices of its busiest stream are drawn; a folded lane is one row. Where a prediction
// stands beside the recording, each of its lanes lies below the recorded one, and both show few rows, to be seen together.
import type { Lane, TimelineIndex } from "../data/server";

export const ROW = 18;
export const HEADING = 24;
export const GAP = 5;
const COUNTER_ROWS = 2;
const COMPARED_ROWS = 3; // of a folded lane beside its prediction

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

/** The recorded rank at whose side a rank stands: itself, but for a predicted one. */
export function recordedOf(index: TimelineIndex, rank: number): number {
  return index.ranks[rank]?.predicted ? rank - index.ranks.filter((one) => !one.predicted).length : rank;
}

/** The rank that is predicted of a recorded one. */
export function predictedOf(index: TimelineIndex, rank: number): number | undefined {
  const at = index.ranks.findIndex((one, at) => one.predicted && recordedOf(index, at) === rank);
  return at < 0 ? undefined : at;
}

function foldedRows(index: TimelineIndex): number {
  return index.ranks.some((rank) => rank.predicted) ? COMPARED_ROWS : 1;
}

/** What has a heading: the ranks, and behind them the machine, where something was sampled of it. */
export function headings(index: TimelineIndex): number[] {
  return [...new Set(index.lanes.map((lane) => lane.rank))];
}

/** With many ranks only the first is unfolded: the others are one line each, and so is the machine. Deep lanes are folded beside their predictions. */
export function foldedAtFirst(index: TimelineIndex): Folded {
  const many = index.ranks.length > 8;
  const unfolded = (at: number) => index.ranks[at] !== undefined && (!many || index.ranks[at].rank === index.ranks[0]!.rank); // and its prediction
  const rows = foldedRows(index);
  const deep = rows > 1 ? index.lanes.filter((lane) => lane.rows > rows) : [];
  return { ranks: new Set(headings(index).filter((at) => !unfolded(at))), lanes: new Set(deep.map((lane) => lane.id)) };
}

export function holdsSlices(lane: Lane): boolean {
  return lane.kind !== "counter";
}

export function busiest(lanes: Lane[]): Lane | null {
  const streams = lanes.filter((lane) => lane.kind === "stream");
  return (streams.length > 0 ? streams : lanes.filter(holdsSlices)).reduce<Lane | null>((most, lane) => (most === null || lane.slices > most.slices ? lane : most), null);
}

export function layOut(index: TimelineIndex, folded: Folded): Layout {
  const bands: Band[] = [];
  const ofLane = new Map<number, Band>();
  const mostFolded = foldedRows(index);
  let top = 0;
  for (const group of grouped(index.lanes, (lane) => recordedOf(index, lane.rank)).values()) {
    for (const [rank, lanes] of grouped(group, (lane) => lane.rank)) {
      const closed = folded.ranks.has(rank);
      const heading: Band = { kind: "rank", rank, lane: closed ? busiest(lanes) : null, top, height: HEADING, rows: 1, folded: closed };
      bands.push(heading);
      top += HEADING + 1;
      if (closed) for (const lane of lanes) ofLane.set(lane.id, heading);
    }
    const shown = group.filter((lane) => !folded.ranks.has(lane.rank));
    for (const lane of pairs(shown)) {
      const short = folded.lanes.has(lane.id);
      const all = holdsSlices(lane) ? Math.max(1, lane.rows) : COUNTER_ROWS;
      const rows = short ? Math.min(all, mostFolded) : all;
      const band: Band = { kind: "lane", rank: lane.rank, lane, top, height: rows * ROW, rows, folded: short };
      bands.push(band);
      ofLane.set(lane.id, band);
      top += rows * ROW + GAP;
    }
    if (shown.length > 0) top += GAP;
  }
  return { bands, ofLane, height: top };
}

function grouped<Key>(lanes: Lane[], keyOf: (lane: Lane) => Key): Map<Key, Lane[]> {
  const groups = new Map<Key, Lane[]>();
  for (const lane of lanes) {
    const group = groups.get(keyOf(lane));
    if (group) group.push(lane);
    else groups.set(keyOf(lane), [lane]);
  }
  return groups;
}

/** Each lane, and below it the same one of the prediction; without one as they are. */
function pairs(lanes: Lane[]): Lane[] {
  if (lanes.every((lane) => lane.rank === lanes[0]!.rank)) return lanes;
  return [...grouped(lanes, (lane) => JSON.stringify([lane.kind, lane.group, lane.name])).values()].flat();
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
