// How one length of time became another: the first, what each class of its parts adds or takes away, the second. Bars begin
// where the one above ended; parts stand under their class, inside its change. Signs are in colours that are told apart
// with the common kinds of colour blindness, and in the figures.
import type { Table, Value } from "../data/report";
import { asNumber, columnIndex } from "../data/report";
import { formatNumber, percent } from "./format";

const MOST_PARTS = 4; // of a class; the others are folded
const NARROW = 0.25; // of the whole: changes below it would hardly be seen on an axis from 0

interface Row {
  name: string;
  from: number;
  to: number;
  share: number | null;
}

interface Group {
  whole: Row;
  parts: Row[];
}

export interface Falls {
  a: number;
  b: number;
  groups: Group[];
}

/** The table as bars, each from where the one before it ended; null: there is no step in it. */
export function fallsOf(table: Table): Falls | null {
  const at = (name: string) => columnIndex(table, name);
  const [level, name, nameB, a, b, delta, share] = ["level", "name", "name_b", "a_ns", "b_ns", "delta_ns", "share"].map(at) as [number, number, number, number, number, number, number];
  const number = (row: Value[], column: number) => asNumber(row[column]) ?? 0;
  const step = table.rows.find((row) => row[level] === "step");
  if (step === undefined) return null;
  const falls: Falls = { a: number(step, a), b: number(step, b), groups: [] };
  let [reached, inside] = [falls.a, 0];
  for (const row of table.rows) {
    if (row[level] === "step") continue;
    const isClass = row[level] === "class";
    if (isClass) inside = reached;
    const from = isClass ? reached : inside;
    const to = from + number(row, delta);
    const other = row[nameB] ?? null;
    const bar: Row = { name: `${row[name]}${other === null ? "" : ` → ${other}`}`, from, to, share: asNumber(row[share]) };
    if (isClass) {
      reached = to;
      falls.groups.push({ whole: bar, parts: [] });
    } else {
      inside = to;
      falls.groups[falls.groups.length - 1]?.parts.push(bar);
    }
  }
  falls.groups = falls.groups.filter((group) => [group.whole, ...group.parts].some((row) => row.from !== row.to));
  return falls;
}

function signed(change: number): string {
  return `${change > 0 ? "+" : change < 0 ? "−" : ""}${formatNumber(Math.abs(change), "ns")}`;
}

/** `names`: of the two whose steps these are. */
export function Waterfall(props: { label: string; table: Table; names: [string, string] }) {
  const falls = fallsOf(props.table);
  if (falls === null) return null;
  const { a, b, groups } = falls;
  if (groups.length === 0) return <p class="empty">No part of the step changed.</p>;
  const ends = [a, b, ...groups.flatMap(({ whole, parts }) => [whole, ...parts]).flatMap((row) => [row.from, row.to])];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const start = high - low < NARROW * high ? low - (high - low) / 4 : Math.min(0, low);
  const place = (value: number) => ((value - start) / (high - start)) * 100;
  const whole = (name: string, value: number) => (
    <li class="row whole" data-fall={name}>
      <span class="name">A step of {name}</span>
      <span class="track" aria-hidden="true">
        <span style={{ left: 0, width: `${place(value)}%` }} />
      </span>
      <b class="value">{formatNumber(value, "ns")}</b>
    </li>
  );
  const bar = (row: Row, kind: string) => (
    <li class={`row ${kind} ${row.to > row.from ? "longer" : "shorter"}`} data-fall={row.name}>
      <span class="name" title={row.name}>
        {row.name}
      </span>
      <span class="track" aria-hidden="true">
        <i style={{ left: `${place(row.from)}%` }} />
        <span style={{ left: `${place(Math.min(row.from, row.to))}%`, width: `${Math.abs(place(row.to) - place(row.from))}%` }} />
      </span>
      <span class="value">
        {signed(row.to - row.from)}
        {row.share !== null && <small> {percent(row.share)}</small>}
      </span>
    </li>
  );
  return (
    <>
      <p class="legend falls-legend">
        <span>
          <i class="longer" aria-hidden="true" /> + makes the step longer
        </span>
        <span>
          <i class="shorter" aria-hidden="true" /> − makes it shorter
        </span>
        <span>percent: of the change</span>
        <span>steps: the mean of those of middle length</span>
        {start > 0 && <span>The axis begins at {formatNumber(start, "ns")}, not at 0.</span>}
      </p>
      <ul class="falls" aria-label={props.label}>
        {whole(props.names[0], a)}
        {groups.map((group) => [
          bar(group.whole, "class"),
          group.parts.slice(0, MOST_PARTS).map((row) => bar(row, "inside")),
          group.parts.length > MOST_PARTS && (
            <li>
              <details>
                <summary>{group.parts.length - MOST_PARTS} more</summary>
                <ul class="falls">{group.parts.slice(MOST_PARTS).map((row) => bar(row, "inside"))}</ul>
              </details>
            </li>
          ),
        ])}
        {whole(props.names[1], b)}
      </ul>
    </>
  );
}
