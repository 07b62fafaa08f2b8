// The timeline's part of the address: what is seen, chosen, searched, marked and folded, as texts and back.
import { formatNumbers, parseNumbers, parseStretch } from "../data/route";
import type { SlicePlace, TimelineIndex } from "../data/server";
import type { Folded } from "./lanes";
import { foldedAtFirst } from "./lanes";
import type { Stretch } from "./view";
import { clamped } from "./view";

export interface Range extends Stretch {
  lanes: number[]; // ids; empty: all
}

export interface State {
  view: Stretch;
  top: number;
  slice: SlicePlace | null;
  range: Range | null;
  find: string;
  path: boolean; // are critical paths shown?
  marks: number[];
  folded: Folded;
}

export function readState(params: Record<string, string>, index: TimelineIndex): State {
  const stretch = parseStretch(`${params.from ?? ""}-${params.to ?? ""}`);
  const slice = /^(\d{1,9}):(\d{1,10})$/.exec(params.slice ?? "");
  const range = parseStretch(params.range);
  const first = foldedAtFirst(index);
  const set = (text: string | undefined, otherwise: Set<number>) => (text === undefined ? otherwise : new Set(parseNumbers(text)));
  return {
    view: clamped(stretch ?? { from: 0, to: index.end }, index.end),
    top: Math.max(0, Number.parseInt(params.top ?? "0", 10) || 0),
    slice: slice === null ? null : { rank: Number(slice[1]), slice: Number(slice[2]) },
    range: range === null ? null : { ...range, lanes: parseNumbers(params.on) },
    find: params.find ?? "",
    path: params.path === "1",
    marks: (params.marks ?? "").split(",").filter((text) => /^\d{1,16}$/.test(text)).slice(0, 100).map(Number),
    folded: { ranks: set(params.folded_ranks, first.ranks), lanes: set(params.folded_lanes, first.lanes) },
  };
}

export function writeState(state: State, index: TimelineIndex): Record<string, string> {
  const first = foldedAtFirst(index);
  const params: Record<string, string> = { from: String(Math.floor(state.view.from)), to: String(Math.ceil(state.view.to)) };
  if (state.top > 0) params.top = String(Math.round(state.top));
  if (state.slice) params.slice = `${state.slice.rank}:${state.slice.slice}`;
  if (state.range) {
    params.range = `${Math.floor(state.range.from)}-${Math.ceil(state.range.to)}`;
    if (state.range.lanes.length > 0) params.on = formatNumbers(state.range.lanes);
  }
  if (state.find !== "") params.find = state.find;
  if (state.path) params.path = "1";
  if (state.marks.length > 0) params.marks = state.marks.map((mark) => Math.round(mark)).join(",");
  // "none" says that nothing is folded where something is at first.
  const fold = (name: string, now: Set<number>, before: Set<number>) => {
    const [text, usual] = [formatNumbers(now), formatNumbers(before)];
    if (text !== usual) params[name] = text === "" ? "none" : text;
  };
  fold("folded_ranks", state.folded.ranks, first.ranks);
  fold("folded_lanes", state.folded.lanes, first.lanes);
  return params;
}
