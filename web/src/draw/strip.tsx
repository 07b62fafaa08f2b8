// A strip over time: one lane per metric, drawn as steps (a value holds until the next point), what went on meanwhile
// behind all lanes (bands, or marks such as step boundaries), and a read-out that follows the pointer or the arrow keys.
// Dragging, or + and -, looks closer: what is drawn stays, its view box changes.
//
// Bands of one color are one path, however many: a job of thousands of steps costs the page no more than one of ten.
import { useMemo, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { partColor } from "./color";
import { formatNumber, percent, words } from "./format";
import type { Unit } from "../data/report";

export interface Line {
  name: string; // of what, where the lane does not say it
  color: string;
  t: number[]; // ns from the start of the strip, ascending
  v: (number | null)[];
}

export interface Lane {
  name: string;
  unit: Unit;
  suffix?: string; // behind its numbers
  lines: Line[]; // one is drawn as an area, pale over bands; several as lines
}

export interface Mark {
  t: number; // ns from the start of the strip
  label: string;
}

export interface Band {
  start: number; // ns from the start of the strip
  end: number;
  label: string;
  share: number; // of that time; below 1 where several bands have the same
}

/** What is drawn behind the lanes, and named above them. Both are by start; neither overlaps itself. */
export interface Backdrop {
  steps: Band[];
  phases: Band[];
}

const WIDTH = 1000;
const HEIGHT = 46;
const LINE_HEIGHT = 15; // of the name of a line
const MOST_LINES = 9; // named in a lane

function top(lane: Lane): number {
  if (lane.unit === "ratio") return 1;
  let largest = 0;
  for (const { v } of lane.lines) for (const value of v) largest = Math.max(largest, value ?? 0);
  return largest || 1;
}

function shown(value: number | null, lane: Lane): string {
  return value === null ? "unknown" : formatNumber(value, lane.unit) + (lane.suffix ?? "");
}

function scaled(value: number, largest: number): number {
  return HEIGHT - Math.max(0, Math.min(1, value / largest)) * HEIGHT;
}

/** Area path; an unknown value is a hole, not 0. */
export function areaPath(line: Line, largest: number, length: number): string {
  let path = "";
  for (let i = 0; i < line.t.length; i++) {
    const value = line.v[i];
    if (value === null || value === undefined) continue;
    const x0 = (line.t[i]! / length) * WIDTH;
    const x1 = ((line.t[i + 1] ?? length) / length) * WIDTH;
    path += `M${x0.toFixed(2)} ${HEIGHT}V${scaled(value, largest).toFixed(2)}H${x1.toFixed(2)}V${HEIGHT}Z`;
  }
  return path;
}

/** The same as a line. */
export function linePath(line: Line, largest: number, length: number): string {
  let path = "";
  let drawing = false;
  for (let i = 0; i < line.t.length; i++) {
    const value = line.v[i];
    const x = ((line.t[i]! / length) * WIDTH).toFixed(2);
    if (drawing) path += `H${x}`;
    drawing = value !== null && value !== undefined;
    if (drawing) path += `${path.endsWith(`H${x}`) ? "V" : `M${x} `}${scaled(value!, largest).toFixed(2)}`;
  }
  return path;
}

/** Index of the last of `count` ascending times that is not after `t`; -1: all are. */
function lastBefore(at: (i: number) => number, count: number, t: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(middle) <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function valueAt(line: { t: number[]; v: (number | null)[] }, t: number): number | null {
  const found = lastBefore((i) => line.t[i]!, line.t.length, t);
  return found < 0 ? null : (line.v[found] ?? null);
}

/** The bands around `t`, those of one stretch of time together. */
export function bandsAt(bands: Band[], t: number): Band[] {
  const last = lastBefore((i) => bands[i]!.start, bands.length, t);
  if (last < 0) return [];
  let first = last;
  while (first > 0 && bands[first - 1]!.start === bands[last]!.start) first--;
  return bands.slice(first, last + 1).filter((band) => t < band.end);
}

function heightOf(lane: Lane): number {
  return lane.lines.length > 1 ? 24 + LINE_HEIGHT * (Math.min(lane.lines.length, MOST_LINES) + 1) : HEIGHT;
}

/** The part of the strip that is looked at, in shares of its length. */
interface View {
  from: number;
  to: number;
}

const WHOLE: View = { from: 0, to: 1 };
const CLOSEST = 1 / 1000; // of the strip
const DRAGGED = 0.01; // of the width; less is a click

function clamp(share: number): number {
  return Math.max(0, Math.min(1, share));
}

/** `by` times as close around `at` of the view, within the strip. */
export function closer(view: View, at: number, by: number): View {
  const width = Math.max(CLOSEST, Math.min(1, (view.to - view.from) / by));
  const middle = view.from + at * (view.to - view.from);
  const from = Math.max(0, Math.min(1 - width, middle - at * width));
  return { from, to: from + width };
}

export function Strip(props: { label: string; lanes: Lane[]; marks: Mark[]; length: number; backdrop?: Backdrop }) {
  const { lanes, marks, length, backdrop } = props;
  const [at, setAt] = useState<number | null>(null); // of the view, as `dragged`
  const [dragged, setDragged] = useState<number | null>(null); // where dragging began
  const [view, setView] = useState(WHOLE);
  const timeAt = (share: number) => (view.from + share * (view.to - view.from)) * length;
  const place = (event: MouseEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    return clamp((event.clientX - box.left) / box.width);
  };
  const release = (event: MouseEvent & { currentTarget: HTMLElement }) => {
    const [from, to] = [dragged ?? 0, place(event)].sort((a, b) => a - b) as [number, number];
    if (dragged !== null && to - from > DRAGGED) {
      const [start, end] = [timeAt(from) / length, timeAt(to) / length];
      setView(closer({ from: start, to: end }, 0.5, 1));
    }
    setDragged(null);
  };
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own
    const zoom = { "+": 2, "=": 2, "-": 0.5 }[event.key];
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (zoom === undefined && by === 0) return;
    event.preventDefault();
    if (zoom !== undefined) setView(closer(view, at ?? 0.5, zoom));
    else setAt(clamp((at ?? 0) + (by * (event.shiftKey ? 10 : 1)) / 400));
  };
  const t = at === null ? null : timeAt(at);
  const banded = backdrop !== undefined && backdrop.steps.length + backdrop.phases.length > 0;
  // What follows the pointer is drawn again with each move; what does not is kept.
  const behind = useMemo(() => (banded ? <Behind backdrop={backdrop} length={length} view={view} /> : null), [backdrop, length, view]);
  const rows = useMemo(() => (banded ? <BandRows backdrop={backdrop} length={length} view={view} /> : null), [backdrop, length, view]);
  const plots = useMemo(
    () => lanes.map((lane) => <Plot lane={lane} marks={marks} length={length} view={view} banded={banded} />),
    [lanes, marks, length, view, banded],
  );
  return (
    <div class={banded ? "strip banded" : "strip"}>
      <div class="lanes">
        <div class="lane-names">
          {banded && backdrop.steps.length > 0 && <div class="row">steps</div>}
          {banded && backdrop.phases.length > 0 && <div class="row">phases</div>}
          {lanes.map((lane) => (
            <LaneName lane={lane} t={t} />
          ))}
        </div>
        <div
          class="lane-plots"
          tabIndex={0}
          role="img"
          aria-label={`${props.label}. Arrow keys read the values, + and - look closer and away.`}
          onMouseDown={(event) => setDragged(place(event))}
          onMouseMove={(event) => setAt(place(event))}
          onMouseUp={release}
          onMouseLeave={() => {
            setAt(null);
            setDragged(null);
          }}
          onKeyDown={press}
        >
          {behind}
          {rows}
          {plots}
          {at !== null && <div class="pointer" style={{ left: `${at * 100}%` }} />}
          {at !== null && dragged !== null && (
            <div class="dragged" style={{ left: `${Math.min(at, dragged) * 100}%`, width: `${Math.abs(at - dragged) * 100}%` }} />
          )}
        </div>
      </div>
      <div class="under">
        <div class="axis" aria-hidden="true">
          {[0, 0.25, 0.5, 0.75, 1].map((share) => (
            <span>{formatNumber(Math.round(timeAt(share)), "ns")}</span>
          ))}
        </div>
        <div class="read">
          <p class="read-out" aria-live="polite">
            {t === null ? "" : `${formatNumber(Math.round(t), "ns")}${during(marks, t)}${banded ? meanwhile(backdrop, t) : ""}`}
          </p>
          {view.to - view.from < 1 && (
            <button type="button" onClick={() => setView(WHOLE)}>
              whole time
            </button>
          )}
        </div>
      </div>
    </div>
  );
}

function LaneName(props: { lane: Lane; t: number | null }) {
  const { lane, t } = props;
  const [only] = lane.lines;
  const named = lane.lines.slice(0, MOST_LINES);
  const range = `0 – ${shown(top(lane), lane)}`;
  if (lane.lines.length === 1) {
    return (
      <div title={only!.name}>
        {words(lane.name)}
        <small>
          {t === null ? range : shown(valueAt(only!, t), lane)}
          {only!.name !== "" && ` · ${only!.name}`}
        </small>
      </div>
    );
  }
  return (
    <div style={{ height: `${heightOf(lane) + 4}px` }}>
      {words(lane.name)}
      <small>{range}</small>
      {named.map((one) => (
        <small title={one.name}>
          <i style={{ background: one.color }} aria-hidden="true" />
          {t !== null && `${shown(valueAt(one, t), lane)} · `}
          {one.name}
        </small>
      ))}
      {lane.lines.length > named.length && <small>and {lane.lines.length - named.length} more</small>}
    </div>
  );
}

/** What is drawn over the time that is looked at, as wide as its place; y from 0 to `height`. */
function Canvas(props: { view: View; height: number; class?: string; lane?: string; pixels?: number; children?: ComponentChildren }) {
  const { view, height, pixels } = props;
  return (
    <svg
      class={props.class}
      viewBox={`${view.from * WIDTH} 0 ${(view.to - view.from) * WIDTH} ${height}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      data-lane={props.lane}
      style={pixels === undefined ? undefined : { height: `${pixels}px` }}
    >
      {props.children}
    </svg>
  );
}

function Plot(props: { lane: Lane; marks: Mark[]; length: number; view: View; banded: boolean }) {
  const { lane, marks, length, view } = props;
  const largest = top(lane);
  const one = lane.lines.length === 1;
  return (
    <Canvas view={view} height={HEIGHT} lane={lane.name} {...(one ? {} : { pixels: heightOf(lane) })}>
      {lane.lines.map((line) => (
        <>
          {one && <path class="area" d={areaPath(line, largest, length)} fill={line.color} />}
          {(!one || props.banded) && <path class="line" d={linePath(line, largest, length)} stroke={line.color} />}
        </>
      ))}
      {marks.map((mark) => (
        <line class="mark" x1={(mark.t / length) * WIDTH} x2={(mark.t / length) * WIDTH} y1="0" y2={HEIGHT} />
      ))}
    </Canvas>
  );
}

/** A path of rectangles, each from `low` (0..1) up by `share`. */
function bandPath(bands: { band: Band; low: number }[], length: number): string {
  return bands
    .map(({ band, low }) => {
      const [x0, x1] = [(band.start / length) * WIDTH, (band.end / length) * WIDTH];
      const [y0, y1] = [1 - low, Math.max(0, 1 - low - band.share)];
      return `M${x0.toFixed(2)} ${y0.toFixed(3)}V${y1.toFixed(3)}H${x1.toFixed(2)}V${y0.toFixed(3)}Z`;
    })
    .join("");
}

/** By label, in order of first appearance; bands of the same time are stacked. */
function stacked(bands: Band[]): Map<string, { band: Band; low: number }[]> {
  const found = new Map<string, { band: Band; low: number }[]>();
  let low = 0;
  bands.forEach((band, i) => {
    low = i > 0 && bands[i - 1]!.start === band.start ? low + bands[i - 1]!.share : 0;
    const group = found.get(band.label);
    if (group) group.push({ band, low });
    else found.set(band.label, [{ band, low }]);
  });
  return found;
}

function everyOther(steps: Band[]): { band: Band; low: number }[] {
  return steps.filter((_, i) => i % 2 === 0).map((band) => ({ band, low: 0 }));
}

/** Behind all lanes: every other step shaded, and phases where they are known to be, not as shares of several steps. */
function Behind(props: { backdrop: Backdrop; length: number; view: View }) {
  const { backdrop, length, view } = props;
  const phases = stacked(backdrop.phases.filter((band) => band.share === 1));
  return (
    <Canvas class="behind" view={view} height={1}>
      <path class="step" d={bandPath(everyOther(backdrop.steps), length)} />
      {[...phases].map(([label, bands]) => (
        <path d={bandPath(bands, length)} fill={partColor(label)} data-band={label} />
      ))}
    </Canvas>
  );
}

/** Above the lanes: the numbers of the steps, and the phases in full color, stacked where they are shares. */
function BandRows(props: { backdrop: Backdrop; length: number; view: View }) {
  const { backdrop, length, view } = props;
  const [from, width] = [view.from * length, (view.to - view.from) * length];
  const phases = [...stacked(backdrop.phases)];
  return (
    <>
      {backdrop.steps.length > 0 && (
        <div class="row numbers" aria-hidden="true">
          {roomy(backdrop.steps, from, width).map(({ label, middle }) => (
            <span style={{ left: `${((middle - from) / width) * 100}%` }}>{label}</span>
          ))}
        </div>
      )}
      {phases.length > 0 && (
        <Canvas class="row" view={view} height={1}>
          {phases.map(([label, bands]) => (
            <path d={bandPath(bands, length)} fill={partColor(label)} data-band={label} />
          ))}
        </Canvas>
      )}
    </>
  );
}

/** The labels that find room side by side in a plot of some 500 pixels or more, each in the middle of what is seen of it. */
export function roomy(bands: Band[], from: number, width: number): { label: string; middle: number }[] {
  const perCharacter = width * 0.012;
  const found: { label: string; middle: number }[] = [];
  let free = from - perCharacter;
  for (const band of bands) {
    const [start, end] = [Math.max(from, band.start), Math.min(from + width, band.end)];
    const [middle, half] = [(start + end) / 2, (perCharacter * (band.label.length + 1)) / 2];
    if (end <= start || middle - half < free) continue;
    found.push({ label: band.label, middle });
    free = middle + half;
  }
  return found;
}

function during(marks: Mark[], t: number): string {
  const before = marks.filter((mark) => mark.t <= t).pop();
  return before === undefined ? "" : ` · ${before.label}`;
}

function meanwhile(backdrop: Backdrop, t: number): string {
  const [step] = bandsAt(backdrop.steps, t);
  if (step === undefined) return " · outside of the steps";
  const phases = bandsAt(backdrop.phases, t).map((band) => words(band.label) + (band.share < 1 ? ` ${percent(band.share)}` : ""));
  return ` · step ${step.label}${phases.length > 0 ? ` · ${phases.join(", ")}` : ""}`;
}
