// What lies over the rectangles of a frame, worked out from the state: where the chosen, linked and found slices are.
import type { Found, Lane, SliceDetails, Steps } from "../data/server";
import type { Frame } from "./frame";
import type { Band, Layout } from "./lanes";
import { bandOf, rowTop } from "./lanes";
import type { Place, Scene } from "./overlay";
import type { Palette } from "./palette";
import type { State } from "./state";
import { pixelOf } from "./view";

const MOST_LINKS = 200;

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
  steps: Steps | null;
  details: SliceDetails | null; // of the chosen slice
  found: Found[];
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
    range: state.range,
    rangeBands: bands.filter((band) => isInRange(state, band)).map((band) => ({ y: band.top - state.top - 2, height: band.height + 4 })),
    marks: state.marks,
    cursor: of.cursor,
    chosen,
    links,
    found: of.found.flatMap((one) => {
      const at = place(of, one.lane, one.row ?? 0, one.start, one.duration);
      return at === null || at.right < 0 || at.x > of.width ? [] : [at];
    }),
    foundTimes: of.found,
    separators: bands.map((band) => ({ y: band.top - state.top - (band.kind === "rank" ? 1 : 3), strong: band.kind === "rank" })),
  };
}

function isInRange(state: State, band: Band): boolean {
  const lanes = state.range?.lanes ?? [];
  return lanes.length === 0 || (band.lane !== null && lanes.includes(band.lane.id));
}

function place(of: SceneParts, lane: number, row: number, start: number, duration: number): Place | null {
  const found = of.lanes.get(lane);
  const band = found && bandOf(of.layout, found);
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
