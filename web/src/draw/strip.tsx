// A strip over time: one lane per series, drawn as steps (a value holds until the next point), marks such as step
// boundaries across all lanes, and a read-out that follows the pointer or the arrow keys.
import { useState } from "preact/hooks";
import { formatNumber, words } from "./format";
import type { Unit } from "../data/report";

export interface Lane {
  name: string;
  color: string;
  unit: Unit;
  t: number[]; // ns from the start of the strip, ascending
  v: (number | null)[];
}

export interface Mark {
  t: number; // ns from the start of the strip
  label: string;
}

const WIDTH = 1000;
const HEIGHT = 46;

function top(lane: Lane): number {
  if (lane.unit === "ratio") return 1;
  return lane.v.reduce<number>((largest, v) => Math.max(largest, v ?? 0), 0) || 1;
}

/** Area path; an unknown value is a hole, not 0. */
export function areaPath(lane: Lane, length: number): string {
  const largest = top(lane);
  let path = "";
  for (let i = 0; i < lane.t.length; i++) {
    const value = lane.v[i];
    if (value === null || value === undefined) continue;
    const x0 = (lane.t[i]! / length) * WIDTH;
    const x1 = ((lane.t[i + 1] ?? length) / length) * WIDTH;
    const y = HEIGHT - Math.max(0, Math.min(1, value / largest)) * HEIGHT;
    path += `M${x0.toFixed(2)} ${HEIGHT}V${y.toFixed(2)}H${x1.toFixed(2)}V${HEIGHT}Z`;
  }
  return path;
}

export function valueAt(lane: Lane, t: number): number | null {
  let low = 0;
  let high = lane.t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.t[middle]! <= t) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : (lane.v[low - 1] ?? null);
}

export function Strip(props: { label: string; lanes: Lane[]; marks: Mark[]; length: number }) {
  const { lanes, marks, length } = props;
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
  return (
    <div class="strip">
      <div class="lanes">
        <div class="lane-names">
          {lanes.map((lane) => (
            <div>
              {words(lane.name)}
              <small>{at === null ? `0 – ${formatNumber(top(lane), lane.unit)}` : readOut(lane, at * length)}</small>
            </div>
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
          {lanes.map((lane) => (
            <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" data-lane={lane.name}>
              <path d={areaPath(lane, length)} fill={lane.color} />
              {marks.map((mark) => (
                <line class="mark" x1={(mark.t / length) * WIDTH} x2={(mark.t / length) * WIDTH} y1="0" y2={HEIGHT} />
              ))}
            </svg>
          ))}
          {at !== null && <div class="pointer" style={{ left: `${at * 100}%` }} />}
        </div>
      </div>
      <div class="axis" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <span>{formatNumber(Math.round(length * share), "ns")}</span>
        ))}
      </div>
      <p class="read-out" aria-live="polite">
        {at === null ? "" : `${formatNumber(Math.round(at * length), "ns")}${during(marks, at * length)}`}
      </p>
    </div>
  );
}

function readOut(lane: Lane, t: number): string {
  const value = valueAt(lane, t);
  return value === null ? "unknown" : formatNumber(value, lane.unit);
}

function during(marks: Mark[], t: number): string {
  const before = marks.filter((mark) => mark.t <= t).pop();
  return before === undefined ? "" : ` · ${before.label}`;
}
