// What the served page asks its server, the only part that uses the network. Addresses are relative to the page's own, so
// that it works behind any proxy; the self-contained report never comes here, and its policy would refuse it.
import { parseExact } from "./load";
import type { Value } from "./report";

export interface Fault {
  message: string;
  hint?: string | null;
}

export interface Run {
  id: string;
  name: string;
  path_shown: string;
  state: "ready" | "opening" | "failed";
  share?: number | null;
  error?: Fault | null;
  revision?: number;
  live?: boolean;
}

/** A run as it is after its `revision`th opening: lanes, slices and times are of that state, and refused of another. */
export interface RunState {
  id: string;
  revision: number;
  changes?: string; // of the timeline: the run predicted with them stands beside
}

export interface RunList {
  runs: Run[];
  live?: boolean;
}

/** As the page of steps tells them: up to the end of their work on the device, none before the end of the one before. */
export interface Steps {
  start: number[];
  end: number[];
  host_start: number[]; // of their marks on the host, which may run ahead of the device
  name: string[];
}

export interface TimelineRank {
  rank: number | null;
  predicted?: boolean; // no recording: what it would be with the changes that were asked for
  file: string;
  clock: string;
  // Its clock: what its file calls first_ns is `first`, and a ns there is `rate` ns here.
  first_ns: string;
  first: number;
  last: number; // its last moment
  rate: number;
  bytes?: number | null; // of its file, where the server gives it
  steps: Steps;
}

export interface Lane {
  id: number;
  rank: number; // index into the ranks; one beyond them: of the machine, sampled beside the job
  kind: "thread" | "stream" | "counter" | "other";
  name: string;
  group: string;
  rows: number;
  slices: number;
  // of counters
  unit?: string;
  low?: number; // of the whole recording
  high?: number;
}

/** All times are ns after the origin. */
export interface TimelineIndex {
  origin_ns: string;
  end: number;
  ranks: TimelineRank[];
  lanes: Lane[]; // in drawing order
  counters_left_out?: number;
}

/** Pieces of the critical path of one rank, as columns. */
export interface PathOfRank {
  rank: number;
  of: "steps" | "recording";
  start: number[];
  end: number[];
  lane: number[];
  row: number[];
  slice: (number | null)[]; // none: a gap, or several
  count: number[];
  class: number[];
  evidence: number[];
}

export interface CriticalPaths {
  classes: string[];
  class_meanings: string[];
  evidences: string[];
  evidence_meanings: string[];
  ranks: PathOfRank[];
}

export interface PhasesOfRank {
  rank: number;
  start: number[];
  end: number[];
  phase: number[];
}

export interface Phases {
  phases: string[];
  ranks: PhasesOfRank[];
}

/** A value holds until the next start; null: nothing is known. */
export interface CounterPoints {
  id: number;
  end?: number; // of what was asked for, as the page notes it: what comes after is not known yet
  start: number[];
  low: (number | null)[];
  high: (number | null)[];
}

/** A slice as it is named everywhere: its number is one of its rank's. */
export interface SlicePlace {
  rank: number;
  slice: number;
}

export interface Found extends SlicePlace {
  lane: number;
  row?: number; // of links it is not told
  start: number;
  duration: number;
  name: string;
}

export interface Link extends Found {
  kind: string;
}

export interface SliceDetails {
  name: string;
  start: number;
  duration: number;
  lane: number;
  row: number;
  category: string;
  class: number | string;
  args: string | null; // the text of its event, as its file has it
  parents: string[];
  step: string | null;
  links: Link[];
  links_total: number; // there may be more than are listed
  stack: { of: string; own: boolean; frames: string[] }; // of the slice itself, or of what launched it; innermost first
}

/** What an event carries beside its time: its arguments, where it has some, else its members. A text that is no JSON is one. */
export function argumentsOf(text: string | null): Record<string, unknown> {
  if (text === null || text === "") return {};
  try {
    const event = parseExact(text);
    if (event === null || typeof event !== "object" || Array.isArray(event)) return { value: event };
    const { args } = event as { args?: unknown };
    return (args !== null && typeof args === "object" ? args : event) as Record<string, unknown>;
  } catch {
    return { text };
  }
}

export interface SelectionRow {
  name: string;
  class: number | string;
  count: number;
  total_ns: number;
  self_ns: number | null;
}

export interface QueryColumn {
  name: string;
  type?: string;
  unit?: string;
  meaning?: string;
}

export interface QueryResult {
  columns: (string | QueryColumn)[];
  rows: Value[][];
  cut: boolean; // there are more rows
}

export class ServerError extends Error {
  constructor(
    message: string,
    readonly hint: string | null = null,
    readonly status = 0,
  ) {
    super(message);
  }
}

/** Told when the server has opened a run anew, before the list of runs was asked for again. */
export const stale = new EventTarget();

export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

function address(name: string, params: Record<string, string | number>): string {
  const query = Object.entries(params).map(([key, value]) => `${key}=${encodeURIComponent(String(value)).replace(/%2C/g, ",")}`);
  return `api/${name}${query.length > 0 ? `?${query.join("&")}` : ""}`;
}

async function answer(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { ...init, redirect: "error", cache: "no-store" });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ServerError("The server does not answer", "Is “stepscope view” still running, and the tunnel to it?");
  }
  if (response.status < 400) return response;
  const text = await response.text().catch(() => "");
  let fault: Partial<Fault> = {};
  try {
    fault = (JSON.parse(text) as { error?: Fault }).error ?? {};
  } catch {
    // no JSON: a proxy on the way answered
  }
  if (response.status === 409) stale.dispatchEvent(new Event("stale"));
  throw new ServerError(fault.message || `The server answered with status ${response.status}`, fault.hint ?? null, response.status);
}

type Share = (share: number | null) => void;

const later = (milliseconds: number, signal?: AbortSignal | null) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("", "AbortError"));
    });
  });

/**
 * The answer; while the server still makes it (202), or makes as many others as it can (503), asks again and tells how far
 * it is.
 */
async function whenReady(url: string, init: RequestInit & { signal?: AbortSignal }, share: Share = () => undefined): Promise<Response> {
  const began = performance.now();
  for (;;) {
    let response: Response | null = null;
    try {
      response = await answer(url, init);
    } catch (error) {
      if (!(error instanceof ServerError && error.status === 503)) throw error;
    }
    if (response !== null && response.status !== 202) return response;
    if (response !== null) share(((await response.json()) as { share?: number }).share ?? null);
    // What is soon there is soon shown; what takes minutes is not asked for all the time.
    await later(Math.min(500, Math.max(50, (performance.now() - began) / 10)), init.signal);
  }
}

const text = async (url: string, init: RequestInit & { signal?: AbortSignal }, share?: Share) => (await whenReady(url, init, share)).text();
const json = async <T>(url: string, init: RequestInit & { signal?: AbortSignal } = {}): Promise<T> => parseExact(await text(url, init)) as T;

export const askRuns = (signal: AbortSignal) => json<RunList>(address("runs", {}), { signal });

const of = (state: RunState) => ({ run: state.id, revision: state.revision, ...(state.changes ? { changes: state.changes } : {}) });
const posted = (body: string, signal: AbortSignal) => ({ method: "POST", headers: { "X-Stepscope": "1" }, body, signal });

export const askAnswers = (state: RunState, signal: AbortSignal, share: Share) => text(address("answers", of(state)), { signal }, share);

export async function askTimeline(state: RunState, signal: AbortSignal, share: Share): Promise<TimelineIndex> {
  return JSON.parse(await text(address("timeline", of(state)), { signal }, share)) as TimelineIndex;
}

export async function askTiles(
  state: RunState,
  wanted: { from: number; to: number; px: number; lanes: number[] },
  signal: AbortSignal,
): Promise<ArrayBuffer> {
  const url = address("tiles", { ...of(state), from: wanted.from, to: wanted.to, px: wanted.px, lanes: wanted.lanes.join(",") });
  return (await whenReady(url, { signal })).arrayBuffer();
}

export const MOST_PX = 8192; // of one answer

/** A part of the picture: the stretch from `from` to `to`, of some lanes or ranks, at `px` pixels. */
export interface Part {
  from: number;
  to: number;
  px: number;
  ids: number[];
}

export async function askTraceFile(state: RunState, rank: number): Promise<ArrayBuffer> {
  return (await whenReady(address("trace", { ...of(state), rank }), {})).arrayBuffer();
}

async function askPart<T>(name: string, state: RunState, part: Part, ids: string, signal: AbortSignal): Promise<T> {
  const url = address(name, { ...of(state), from: part.from, to: part.to, px: part.px, [ids]: part.ids.join(",") });
  return JSON.parse(await text(url, { signal })) as T;
}

export const askPath = (state: RunState, part: Part, signal: AbortSignal) => askPart<CriticalPaths>("path", state, part, "ranks", signal);

export const askPhases = (state: RunState, part: Part, signal: AbortSignal) => askPart<Phases>("phases", state, part, "ranks", signal);

export const askCounters = (state: RunState, part: Part, signal: AbortSignal) =>
  askPart<{ lanes: CounterPoints[] }>("counters", state, part, "lanes", signal);

export const askSlice = (state: RunState, wanted: SlicePlace, signal: AbortSignal) =>
  json<SliceDetails>(address("slice", { ...of(state), slice: wanted.slice, rank: wanted.rank }), { signal });

export const askSearch = (state: RunState, text: string, signal: AbortSignal) =>
  json<{ total: number; found: Found[] }>(address("search", { ...of(state), q: text, limit: 200 }), { signal });

export const askSelection = (state: RunState, wanted: { from: number; to: number; lanes: number[] }, signal: AbortSignal) =>
  json<{ rows: SelectionRow[]; cut: boolean }>(
    address("selection", { ...of(state), from: wanted.from, to: wanted.to, lanes: wanted.lanes.join(",") || "all" }), // none: all
    { signal },
  );

/** Of the newest state: what it finds names no slice. */
export const askQuery = (run: string, sql: string, signal: AbortSignal) => json<QueryResult>(address("query", { run }), posted(sql, signal));

/** A report of one answer, what_if. Changes as the options of `stepscope what-if`, one a line. */
export const askWhatIf = (state: RunState, changes: string, signal: AbortSignal) =>
  text(address("what_if", of(state)), posted(changes, signal));

/** A report of what changed from run `before` to this one. */
export const askDiff = (state: RunState, before: string, signal: AbortSignal, share: Share) =>
  text(address("diff", { ...of(state), before }), { signal }, share);
