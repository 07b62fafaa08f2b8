// Amounts that add up, one on the other, over time or over numbers of events: what is held and what it is for. A value
// holds until the next point. What is around all of it (what was reserved) is a line, and moments have marks.
import { useMemo, useState } from "preact/hooks";
import type { Unit } from "../data/report";
import { formatNumber, words } from "./format";
import { valueAt } from "./strip";

export interface Layer {
  name: string;
  color: string;
  v: number[]; // as many as the chart has points
}

export interface Outline {
  name: string;
  x: number[];
  v: (number | null)[];
}

export interface Moment {
  x: number;
  label: string;
}

const WIDTH = 1000;
const HEIGHT = 220;

/** Closed paths of the layers, the first at the bottom. `length` and `largest` are the ends of both axes. */
export function layerPaths(layers: Layer[], x: number[], length: number, largest: number): string[] {
  const across = (at: number) => ((at / length) * WIDTH).toFixed(1);
  const up = (value: number) => (HEIGHT - (value / largest) * HEIGHT).toFixed(1);
  let below = x.map(() => 0);
  return layers.map((layer) => {
    const above = below.map((value, i) => value + Math.max(0, layer.v[i] ?? 0));
    let path = `M${across(x[0]!)} ${up(above[0]!)}`;
    for (let i = 1; i < x.length; i++) path += `H${across(x[i]!)}V${up(above[i]!)}`;
    path += `H${across(length)}V${up(below[below.length - 1]!)}`;
    for (let i = x.length - 1; i > 0; i--) path += `H${across(x[i]!)}V${up(below[i - 1]!)}`;
    below = above;
    return `${path}H${across(x[0]!)}Z`;
  });
}

function outlinePath(line: Outline, length: number, largest: number): string {
  let path = "";
  line.x.forEach((at, i) => {
    const y = (HEIGHT - ((line.v[i] ?? 0) / largest) * HEIGHT).toFixed(1);
    const across = ((at / length) * WIDTH).toFixed(1);
    path += i === 0 ? `M${across} ${y}` : `H${across}V${y}`;
  });
  return path && `${path}H${WIDTH}`;
}

interface Props {
  label: string;
  layers: Layer[];
  x: number[]; // ascending, from 0 on
  length: number;
  shownX: (x: number) => string;
  unit: Unit;
  outline?: Outline | undefined;
  moments: Moment[];
}

export function StackChart(props: Props) {
  const { layers, x, length, shownX, unit, outline, moments } = props;
  const [at, setAt] = useState<number | null>(null); // share of the width
  const [paths, line, largest] = useMemo(() => {
    const sums = x.map((_, i) => layers.reduce((sum, layer) => sum + Math.max(0, layer.v[i] ?? 0), 0));
    const most = [...sums, ...(outline?.v ?? [])].reduce<number>((most, value) => Math.max(most, value ?? 0), 1);
    return [layerPaths(layers, x, length, most), outline ? outlinePath(outline, length, most) : "", most] as const;
  }, [layers, x, length, outline]);
  const press = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    setAt(Math.max(0, Math.min(1, (at ?? 0) + (by * (event.shiftKey ? 10 : 1)) / 400)));
  };
  const place = (event: MouseEvent & { currentTarget: HTMLElement }) => {
    const box = event.currentTarget.getBoundingClientRect();
    setAt(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)));
  };
  return (
    <div class="stack">
      <div class="scale" aria-hidden="true">
        <span>{formatNumber(Math.round(largest), unit)}</span>
        <span>{formatNumber(Math.round(largest / 2), unit)}</span>
        <span>0</span>
      </div>
      <div
        class="plot"
        tabIndex={0}
        role="img"
        aria-label={`${props.label}. Arrow keys read the values.`}
        onMouseMove={place}
        onMouseLeave={() => setAt(null)}
        onKeyDown={press}
      >
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" height={HEIGHT} aria-hidden="true">
          <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
          {layers.map((layer, i) => (
            <path data-layer={layer.name} d={paths[i]!} fill={layer.color} />
          ))}
          {line !== "" && <path class="outline" d={line} />}
          {moments.map((moment) => (
            <line class="moment" x1={(moment.x / length) * WIDTH} x2={(moment.x / length) * WIDTH} y1="0" y2={HEIGHT}>
              <title>{moment.label}</title>
            </line>
          ))}
        </svg>
        {at !== null && <div class="pointer" style={{ left: `${at * 100}%` }} />}
        <div class="axis" aria-hidden="true">
          {[0, 0.25, 0.5, 0.75, 1].map((share) => (
            <span>{shownX(share * length)}</span>
          ))}
        </div>
      </div>
      <ul class="legend">
        {[...layers].reverse().map((layer) => (
          <li data-part={layer.name}>
            <i style={{ background: layer.color }} aria-hidden="true" />
            {words(layer.name)}
            {at !== null && <b> {formatNumber(valueAt({ t: x, v: layer.v }, at * length) ?? 0, unit)}</b>}
          </li>
        ))}
        {outline && (
          <li data-part={outline.name}>
            <i class="outline" aria-hidden="true" />
            {words(outline.name)}
            {at !== null && <b> {formatNumber(valueAt({ t: outline.x, v: outline.v }, at * length) ?? 0, unit)}</b>}
          </li>
        )}
      </ul>
      <p class="read-out" aria-live="polite">
        {at !== null && `at ${shownX(at * length)}`}
      </p>
    </div>
  );
}
