// A field of values, ranks down and steps across: which one is odd is seen at a glance, a slow rank as a line and a slow
// step as a column. One hue from pale to strong, so that no kind of color blindness hides it; the value is in the title.
import type { Unit } from "../data/report";
import { formatNumber } from "./format";

export interface HeatRow {
  label: string;
  values: (number | null)[]; // one per column; null: unknown, or not there
}

const MOST_COLUMNS = 200; // more are joined, the largest of each bunch is shown
const MOST_ROWS = 512;
const MOST_CELLS = 20_000; // each is an element of the page
const CELL = 14; // px high, and at least as wide
const WIDEST = 48;
const ROOM = 1000; // px that a page has
const LEFT = 64;

/** Neighboring columns as one: of the values of each bunch the largest. */
export function bunched(values: (number | null)[], size: number): (number | null)[] {
  if (size <= 1) return values;
  const out: (number | null)[] = [];
  for (let i = 0; i < values.length; i += size) {
    const known = values.slice(i, i + size).filter((value): value is number => value !== null);
    out.push(known.length > 0 ? Math.max(...known) : null);
  }
  return out;
}

/** From 0 (the smallest) to 1 (the largest) between the 5th and 95th of a hundred, so that one outlier does not pale all others. */
export function strengths(rows: HeatRow[]): (value: number) => number {
  const sorted = rows.flatMap((row) => row.values.filter((value): value is number => value !== null)).sort((a, b) => a - b);
  if (sorted.length === 0) return () => 0;
  const at = (part: number) => sorted[Math.round((sorted.length - 1) * part)]!;
  const low = at(0.05);
  const high = at(0.95);
  // Where all are alike, a difference of a tenth is shown as one.
  const span = Math.max(high - low, Math.abs(at(0.5)) / 10, Number.MIN_VALUE);
  return (value) => Math.min(1, Math.max(0, (value - low) / span));
}

export function HeatMap(props: { label: string; columns: string[]; rows: HeatRow[]; unit: Unit }) {
  const drawn = Math.min(props.rows.length, MOST_ROWS);
  const size = Math.ceil(props.columns.length / Math.min(MOST_COLUMNS, Math.ceil(MOST_CELLS / Math.max(1, drawn))));
  const columns = props.columns.filter((_, i) => i % size === 0);
  const rows = props.rows.slice(0, MOST_ROWS).map((row) => ({ ...row, values: bunched(row.values, size) }));
  const strength = strengths(rows);
  const wide = Math.min(WIDEST, Math.max(CELL, Math.floor((ROOM - LEFT) / columns.length)));
  const width = LEFT + columns.length * wide;
  const every = Math.ceil(28 / wide);
  const each = rows.length > 40 ? Math.ceil(rows.length / 20) : 1;
  const name = (at: number) => (size > 1 ? `${columns[at]} and the next ${size - 1}` : columns[at]);
  return (
    <div class="heat">
      <svg viewBox={`0 0 ${width} ${rows.length * CELL + 18}`} width={width} height={rows.length * CELL + 18} role="img" aria-label={props.label}>
        {rows.map((row, y) => (
          <>
            {y % each === 0 && (
              <text x={LEFT - 6} y={y * CELL + CELL - 4} class="heat-row">
                {row.label}
              </text>
            )}
            {row.values.map((value, x) => (
              <rect
                x={LEFT + x * wide}
                y={y * CELL}
                width={wide - 1}
                height={CELL - 1}
                class={value === null ? "heat-unknown" : "heat-cell"}
                fill-opacity={value === null ? 1 : (0.08 + 0.92 * strength(value)).toFixed(2)}
              >
                <title>{`${row.label}, step ${name(x)}: ${value === null ? "unknown" : formatNumber(value, props.unit)}`}</title>
              </rect>
            ))}
          </>
        ))}
        {columns.map(
          (column, x) =>
            x % every === 0 && (
              <text x={LEFT + x * wide + wide / 2} y={rows.length * CELL + 13} class="heat-column">
                {column}
              </text>
            ),
        )}
      </svg>
      {props.rows.length > MOST_ROWS && <p class="soft">Drawn: the first {MOST_ROWS} of {props.rows.length} ranks; the table has all.</p>}
    </div>
  );
}
