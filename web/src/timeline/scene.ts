// What lies over the rectangles of a frame, worked out from the state: where the chosen, linked and found slices are.
import type { Found, Lane, SliceDetails, Steps, TimelineRank } from "../data/server";
import type { Frame } from "./frame";
import type { Band, Layout } from "./lanes";
import { GAP, ROW, rowTop } from "./lanes";
import type { Layers, Path } from "./layers";
import type { CounterPlace, PathPlace, StripPlace } from "./layers_draw";
import type { Place, Scene } from "./overlay";
import type { Palette } from "./palette";
import type { State } from "./state";
import { indexAt, pixelOf } from "./view";

const MOST_LINKS = 200;
const LEAST_STEP = 40; // px in the mean; nearer, lines would only hide what is beneath

export interface SceneParts {
  state: State;
  layout: Layout;
  lanes: Map<number, Lane>;
  bands: Band[]; // in view
  frame: Frame;
  width: number;
  height: number;
  palette: Palette;
  cursor: number | null;
  steps: Steps[]; // of the rank that is looked at, and its predicted ones
  ranks: TimelineRank[];
  details: SliceDetails | null; // of the chosen slice
  found: Found[];
  layers: Layers;
}

export function sceneOf(of: SceneParts): Scene {
  const { state, bands, details } = of;
  const chosen = details === null ? null : place(of, details.lane, details.row, details.start, details.duration);
  const links = (details?.links ?? []).slice(0, MOST_LINKS).flatMap((link) => {
    const at = place(of, link.lane, link.row ?? rowOf(of.frame, link), link.start, link.duration);
    return at === null ? [] : [{ link, place: at }];
  });
  return {
    view: state.view,
    width: of.width,
    height: of.height,
    palette: of.palette,
    steps: of.steps,
    boundaries: boundariesOf(of),
    range: state.range,
    rangeBands: bands.filter((band) => isInRange(state, band)).map((band) => ({ y: band.top - state.top - 2, height: band.height + 4 })),
    marks: state.marks,
    cursor: of.cursor,
    chosen,
    links,
    strips: stripsOf(of),
    counters: countersOf(of),
    path: pathOf(of),
    found: of.found.flatMap((one) => {
      const at = place(of, one.lane, one.row ?? 0, one.start, one.duration);
      return at === null || at.right < 0 || at.x > of.width ? [] : [at];
    }),
    foundTimes: of.found,
    separators: bands.map((band) => ({ y: band.top - state.top - (band.kind === "rank" ? 1 : 3), strong: band.kind === "rank" })),
  };
}

/** Where the steps of a band's own rank begin there: on a thread with their marks, on a stream when it is theirs. */
function boundariesOf(of: SceneParts): { x: number; y: number; height: number }[] {
  const { view, top } = of.state;
  const found = new Map<string, number[]>();
  return of.bands.flatMap((band) => {
    const steps = of.ranks[band.rank]?.steps;
    if (steps === undefined) return [];
    const times = band.lane?.kind === "stream" ? steps.start : steps.host_start;
    const key = `${band.rank} ${times === steps.start}`;
    if (!found.has(key)) {
      const seen = times.filter((time) => time >= view.from && time <= view.to);
      found.set(key, seen.length > of.width / LEAST_STEP ? [] : seen.map((time) => pixelOf(view, of.width, time)));
    }
    return found.get(key)!.map((x) => ({ x, y: band.top - top, height: band.height + GAP }));
  });
}

function isInRange(state: State, band: Band): boolean {
  const lanes = state.range?.lanes ?? [];
  return lanes.length === 0 || (band.lane !== null && lanes.includes(band.lane.id));
}

function place(of: SceneParts, lane: number, row: number, start: number, duration: number): Place | null {
  const band = of.layout.ofLane.get(lane);
  if (band === undefined) return null;
  const { view, top } = of.state;
  return {
    x: pixelOf(view, of.width, start),
    right: pixelOf(view, of.width, start + duration),
    y: rowTop(band, Math.min(row, band.rows - 1)) - top,
  };
}

/** Links do not tell the row; a slice that is on the screen does. */
function rowOf(frame: Frame, of: { lane: number; slice: number }): number {
  for (let i = 0; i < frame.count; i++) {
    const tile = frame.tile[i]!;
    if (tile.lane === of.lane && tile.slice[frame.at[i]!] === of.slice) return tile.row[frame.at[i]!]!;
  }
  return 0;
}

function stripsOf(of: SceneParts): StripPlace[] {
  return of.bands.flatMap((band) => {
    const strip = band.kind === "rank" ? of.layers.phases.get(band.rank) : undefined;
    return strip === undefined ? [] : [{ y: band.top - of.state.top, height: band.height, thin: band.lane !== null, strip }];
  });
}

function countersOf(of: SceneParts): CounterPlace[] {
  return of.bands.flatMap((band) => {
    const points = band.lane === null ? undefined : of.layers.counters.get(band.lane.id);
    return band.lane === null || points === undefined ? [] : [{ y: band.top - of.state.top, height: band.height, lane: band.lane, points }];
  });
}

/** Pieces of the ranks in view, and lines where the path goes from one lane to another. */
function pathOf(of: SceneParts): PathPlace {
  const place: PathPlace = { boxes: [], lines: [] };
  const { view } = of.state;
  for (const rank of of.state.path ? new Set(of.bands.map((band) => band.rank)) : []) {
    const path = of.layers.path.get(rank);
    if (path === undefined) continue;
    let before: { x: number; y: number; lane: number; end: number } | null = null;
    for (let i = indexAt(path.start, view.from); i < path.start.length && path.start[i]! < view.to; i++) {
      const [x, right, y] = [pixelOf(view, of.width, path.start[i]!), pixelOf(view, of.width, path.end[i]!), pathTop(of, path, i)];
      const single = path.count[i] === 1;
      if (y === null) {
        before = null;
        continue;
      }
      if (y + ROW > 0 && y < of.height && right > 0) place.boxes.push({ x, right, y, gap: single && path.slice[i] === null });
      const middle = y + ROW / 2;
      if (single && before !== null && before.lane !== path.lane[i] && Math.abs(before.end - path.start[i]!) <= 2) {
        place.lines.push({ x: before.x, y: before.y, toX: x, toY: middle });
      }
      before = single ? { x: right, y: middle, lane: path.lane[i]!, end: path.end[i]! } : null;
    }
  }
  return place;
}

function pathTop(of: SceneParts, path: Path, i: number): number | null {
  const band = of.layout.ofLane.get(path.lane[i]!);
  // In the heading of a folded rank only one lane is drawn.
  if (band === undefined || (band.kind === "rank" && band.lane?.id !== path.lane[i])) return null;
  return rowTop(band, Math.min(path.row[i]!, band.rows - 1)) - of.state.top;
}
