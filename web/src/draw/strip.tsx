// A strip over time: one lane per metric, drawn as steps (a value holds until the next point), what went on meanwhile
// behind all lanes (bands, or marks such as step boundaries), and a read-out that follows the pointer or the arrow keys.
//
// Bands of one color are one path, however many: a job of thousands of steps costs the page no more than one of ten.
import { useMemo, useState } from "preact/hooks";
import { partColor } from "./color";
import { formatNumber, percent, words } from "./format";
import type { Unit } from "../data/report";

export interface Line {
  name: string; // of several lines in a lane
  color: string;
  t: number[]; // ns from the start of the strip, ascending
  v: (number | null)[];
}

export interface Lane {
  name: string;
  unit: Unit;
  suffix?: string; // behind its numbers
  lines: Line[]; // one is drawn as an area, several as lines
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
const MOST_LINES = 8; // named in a lane

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

export function Strip(props: { label: string; lanes: Lane[]; marks: Mark[]; length: number; backdrop?: Backdrop }) {
  const { lanes, marks, length, backdrop } = props;
  const [at, setAt] = useState<number | null>(null);
  const follow = (event: MouseEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    setAt(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)));
  };
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    setAt(Math.max(0, Math.min(1, (at ?? 0) + (by * (event.shiftKey ? 10 : 1)) / 400)));
  };
  const t = at === null ? null : at * length;
  const banded = backdrop !== undefined && backdrop.steps.length + backdrop.phases.length > 0;
  // What follows the pointer is drawn again with each move; what does not is kept.
  const behind = useMemo(() => (banded ? <Behind backdrop={backdrop} length={length} /> : null), [backdrop, length]);
  const rows = useMemo(() => (banded ? <BandRows backdrop={backdrop} length={length} /> : null), [backdrop, length]);
  const plots = useMemo(
    () => lanes.map((lane) => <Plot lane={lane} marks={marks} length={length} />),
    [lanes, marks, length],
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
          aria-label={`${props.label}. Arrow keys read the values.`}
          onMouseMove={follow}
          onMouseLeave={() => setAt(null)}
          onKeyDown={move}
        >
          {behind}
          {rows}
          {plots}
          {at !== null && <div class="pointer" style={{ left: `${at * 100}%` }} />}
        </div>
      </div>
      <div class="under">
        <div class="axis" aria-hidden="true">
          {[0, 0.25, 0.5, 0.75, 1].map((share) => (
            <span>{formatNumber(Math.round(length * share), "ns")}</span>
          ))}
        </div>
        <p class="read-out" aria-live="polite">
          {t === null ? "" : `${formatNumber(Math.round(t), "ns")}${during(marks, t)}${banded ? meanwhile(backdrop, t) : ""}`}
        </p>
      </div>
    </div>
  );
}

function LaneName(props: { lane: Lane; t: number | null }) {
  const { lane, t } = props;
  const [line] = lane.lines;
  const named = lane.lines.slice(0, MOST_LINES);
  const range = `0 – ${shown(top(lane), lane)}`;
  if (lane.lines.length === 1) {
    return (
      <div>
        {words(lane.name)}
        <small>{t === null ? range : shown(valueAt(line!, t), lane)}</small>
      </div>
    );
  }
  return (
    <div style={{ height: `${heightOf(lane) + 4}px` }}>
      {words(lane.name)}
      <small>{range}</small>
      {named.map((one) => (
        <small>
          <i style={{ background: one.color }} aria-hidden="true" />
          {one.name}
          {t !== null && ` ${shown(valueAt(one, t), lane)}`}
        </small>
      ))}
      {lane.lines.length > named.length && <small>and {lane.lines.length - named.length} more</small>}
    </div>
  );
}

function Plot(props: { lane: Lane; marks: Mark[]; length: number }) {
  const { lane, marks, length } = props;
  const largest = top(lane);
  const one = lane.lines.length === 1;
  return (
    <svg
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      data-lane={lane.name}
      style={one ? undefined : { height: `${heightOf(lane)}px` }}
    >
      {lane.lines.map((line) => (
        <>
          {one && <path class="area" d={areaPath(line, largest, length)} fill={line.color} />}
          <path class="line" d={linePath(line, largest, length)} stroke={line.color} />
        </>
      ))}
      {marks.map((mark) => (
        <line class="mark" x1={(mark.t / length) * WIDTH} x2={(mark.t / length) * WIDTH} y1="0" y2={HEIGHT} />
      ))}
    </svg>
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
function Behind(props: { backdrop: Backdrop; length: number }) {
  const { backdrop, length } = props;
  const phases = stacked(backdrop.phases.filter((band) => band.share === 1));
  return (
    <svg class="behind" viewBox={`0 0 ${WIDTH} 1`} preserveAspectRatio="none" aria-hidden="true">
      <path class="step" d={bandPath(everyOther(backdrop.steps), length)} />
      {[...phases].map(([label, bands]) => (
        <path d={bandPath(bands, length)} fill={partColor(label)} data-band={label} />
      ))}
    </svg>
  );
}

/** Above the lanes: the numbers of the steps, and the phases in full color, stacked where they are shares. */
function BandRows(props: { backdrop: Backdrop; length: number }) {
  const { backdrop, length } = props;
  const phases = [...stacked(backdrop.phases)];
  return (
    <>
      {backdrop.steps.length > 0 && (
        <div class="row numbers" aria-hidden="true">
          {roomy(backdrop.steps, length).map((band) => (
            <span style={{ left: `${((band.start + band.end) / 2 / length) * 100}%` }}>{band.label}</span>
          ))}
        </div>
      )}
      {phases.length > 0 && (
        <svg class="row" viewBox={`0 0 ${WIDTH} 1`} preserveAspectRatio="none" aria-hidden="true">
          {phases.map(([label, bands]) => (
            <path d={bandPath(bands, length)} fill={partColor(label)} data-band={label} />
          ))}
        </svg>
      )}
    </>
  );
}

/** The bands whose labels find room side by side, in a plot of some 500 pixels or more. */
export function roomy(bands: Band[], length: number): Band[] {
  const perCharacter = length * 0.016;
  let free = -Infinity;
  return bands.filter((band) => {
    const half = (perCharacter * (band.label.length + 1)) / 2;
    const middle = (band.start + band.end) / 2;
    if (middle - half < free) return false;
    free = middle + half;
    return true;
  });
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
