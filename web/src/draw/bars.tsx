// Stacked bars: one horizontal bar whose parts add up to a whole, and a row of upright ones. Parts are named in a legend
// with their figures, so that nothing hangs on colour or on a tooltip alone.
import { isPale, partColor } from "./color";
import { formatNumber, percent, words } from "./format";
import type { Unit } from "../data/report";

export interface Part {
  name: string;
  value: number | null; // null: unknown, named in the legend and left out of the bar
  meaning?: string;
}

export function StackedBar(props: { label: string; parts: Part[]; unit: Unit; whole?: number }) {
  const sum = props.parts.reduce((total, part) => total + Math.max(0, part.value ?? 0), 0);
  const whole = Math.max(props.whole ?? sum, sum);
  const known = props.parts.filter((part) => (part.value ?? 0) > 0);
  const says = known.map((part) => `${words(part.name)} ${formatNumber(part.value!, props.unit)}`).join(", ");
  return (
    <figure class="stacked">
      <div class="bar" role="img" aria-label={`${props.label}: ${says || "nothing"}`}>
        {known.map((part) => (
          <div
            class={isPale(part.name) ? "part pale" : "part"}
            title={`${words(part.name)}: ${formatNumber(part.value!, props.unit)}, ${percent(part.value! / whole)}`}
            style={{ width: `${(part.value! / whole) * 100}%`, background: partColor(part.name) }}
          >
            {part.value! / whole > 0.12 && <span>{words(part.name)}</span>}
          </div>
        ))}
      </div>
      <Legend parts={props.parts} unit={props.unit} whole={whole} />
    </figure>
  );
}

export function Legend(props: { parts: Part[]; unit?: Unit; whole?: number }) {
  const nothing = props.parts.filter((part) => part.value === 0);
  return (
    <ul class="legend">
      {props.parts.filter((part) => part.value !== 0).map((part) => (
        <li title={part.meaning} data-part={part.name}>
          <i style={{ background: partColor(part.name) }} aria-hidden="true" />
          {words(part.name)}
          {props.unit !== undefined && (
            <>
              {" "}
              <b>{part.value === null ? "unknown" : formatNumber(part.value, props.unit)}</b>
              {part.value !== null && props.whole ? <small> {percent(part.value / props.whole)}</small> : null}
            </>
          )}
        </li>
      ))}
      {nothing.length > 0 && (
        <li class="soft">
          0:{" "}
          {nothing.map((part, i) => (
            <span title={part.meaning} data-part={part.name}>
              {i > 0 && ", "}
              {words(part.name)}
            </span>
          ))}
        </li>
      )}
    </ul>
  );
}

export interface Upright {
  label: string;
  parts: Part[];
  mark?: string; // why this one is special, such as "cut by the edge of the recording"
}

const HEIGHT = 180;

const MOST_BARS = 500; // as many as can be told apart

const total = (bar: Upright) => bar.parts.reduce((sum, part) => sum + Math.max(0, part.value ?? 0), 0);

/** Of each bunch of `size` neighbors the highest, so that no outlier is lost. */
export function highest(bars: Upright[], size: number): Upright[] {
  if (size <= 1) return bars;
  const out: Upright[] = [];
  for (let i = 0; i < bars.length; i += size) {
    out.push(bars.slice(i, i + size).reduce((most, bar) => (total(bar) > total(most) ? bar : most)));
  }
  return out;
}

/** Upright stacked bars with a scale from 0. */
export function UprightBars(props: { label: string; bars: Upright[]; unit: Unit; most?: number }) {
  const size = Math.ceil(props.bars.length / MOST_BARS);
  const bars = highest(props.bars, size);
  const largest = bars.reduce((most, bar) => Math.max(most, total(bar)), Math.max(1, props.most ?? 0));
  const slot = 1000 / bars.length;
  const everyLabel = Math.ceil(bars.length / 24);
  return (
    <div class="upright" role="img" aria-label={props.label}>
      <div class="scale" aria-hidden="true">
        <span>{formatNumber(largest, props.unit)}</span>
        <span>{formatNumber(largest / 2, props.unit)}</span>
        <span>0</span>
      </div>
      <div class="plot">
        <svg viewBox={`0 0 1000 ${HEIGHT}`} preserveAspectRatio="none" height={HEIGHT} aria-hidden="true">
          <line class="grid" x1="0" x2="1000" y1={HEIGHT / 2} y2={HEIGHT / 2} />
          {bars.map((bar, i) => {
            let top = HEIGHT;
            const width = Math.min(slot * 0.8, 90);
            return (
              <g class={bar.mark ? "marked" : ""} data-bar={bar.label}>
                <title>
                  {`${bar.label}: ${formatNumber(total(bar), props.unit)}${bar.mark ? ` (${bar.mark})` : ""}\n` +
                    bar.parts
                      .filter((part) => (part.value ?? 0) > 0)
                      .map((part) => `${words(part.name)} ${formatNumber(part.value!, props.unit)}`)
                      .join("\n")}
                </title>
                {bar.parts.map((part) => {
                  const height = (Math.max(0, part.value ?? 0) / largest) * HEIGHT;
                  top -= height;
                  return height > 0 ? (
                    <rect x={slot * i + (slot - width) / 2} y={top} width={width} height={height} fill={partColor(part.name)} />
                  ) : null;
                })}
              </g>
            );
          })}
        </svg>
        <div class="names" aria-hidden="true">
          {bars.map((bar, i) => (
            <span>{i % everyLabel === 0 ? bar.label : ""}</span>
          ))}
        </div>
        {size > 1 && (
          <p class="soft">
            Drawn: of each {size} neighbors the longest, {bars.length} of {props.bars.length}.
          </p>
        )}
      </div>
    </div>
  );
}
