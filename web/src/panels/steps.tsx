// How long each step took and what it was spent on: one bar of the mean step, a field of ranks and steps where there are
// several ranks, one upright bar per step and rank. The parts are those of the steps answer and add up to the wall time.
import type { Column, Report, Table, Value } from "../data/report";
import { asNumber, columnIndex, rowsByRank, table } from "../data/report";
import { StackedBar, UprightBars } from "../draw/bars";
import type { Part, Upright } from "../draw/bars";
import { words } from "../draw/format";
import { HeatMap } from "../draw/heat_map";
import type { HeatRow } from "../draw/heat_map";
import { Rest, TabbedTables } from "../draw/answer";
import { useChoice } from "../draw/page_state";
import type { Panel } from "../draw/panel";

const MAX_CHARTS = 8; // ranks drawn; the field has them all

/** The *_ns columns after the wall time and the host's part: what a step is made of. */
export function partColumns(steps: Table): { column: Column; index: number }[] {
  const whole = new Set(["start_ns", "wall_ns", "host_ns"]);
  return steps.columns
    .map((column, index) => ({ column, index }))
    .filter(({ column }) => column.unit === "ns" && !whole.has(column.name));
}

function partName(column: Column): string {
  return column.name.replace(/_ns$/, "");
}

function shortLabel(steps: Table, row: Value[]): string {
  const number = row[columnIndex(steps, "number")] ?? null;
  return number !== null ? String(number) : String(row[columnIndex(steps, "step")] ?? "");
}

function uprights(steps: Table, rows: Value[][]): Upright[] {
  const parts = partColumns(steps);
  const partial = columnIndex(steps, "partial");
  return rows.map((row) => ({
    label: shortLabel(steps, row),
    parts: parts.map(({ column, index }) => ({ name: partName(column), value: asNumber(row[index]) })),
    ...(row[partial] === true ? { mark: "cut by the edge of the recording" } : {}),
  }));
}

// One scale for the charts of all ranks.
function longestWall(steps: Table): number {
  const at = columnIndex(steps, "wall_ns");
  return steps.rows.reduce((most, row) => Math.max(most, asNumber(row[at]) ?? 0), 0);
}

function breakdownParts(breakdown: Table): Part[] {
  const at = (name: string) => columnIndex(breakdown, name);
  return breakdown.rows.map((row) => ({
    name: String(row[at("part")] ?? ""),
    value: asNumber(row[at("priority_ns")]),
    meaning: String(row[at("meaning")] ?? ""),
  }));
}

/** Ranks down, steps across, by the numbers of the steps; steps that are cut say nothing. */
export function fieldOf(steps: Table, metric: number): { columns: string[]; rows: HeatRow[] } {
  const number = columnIndex(steps, "number");
  const partial = columnIndex(steps, "partial");
  const key = (row: Value[]) => asNumber(row[number] ?? null);
  const numbers = [...new Set(steps.rows.map(key))].filter((one): one is number => one !== null).sort((a, b) => a - b);
  const at = new Map(numbers.map((one, i) => [one, i]));
  const rows = [...rowsByRank(steps)].map(([rank, own]) => {
    const values: (number | null)[] = numbers.map(() => null);
    for (const row of own) {
      const column = at.get(key(row) ?? NaN);
      if (column !== undefined && row[partial] !== true) values[column] = asNumber(row[metric] ?? null);
    }
    return { label: `rank ${rank}`, values };
  });
  return { columns: numbers.map(String), rows };
}

function Field(props: { steps: Table }) {
  const { steps } = props;
  const choices = steps.columns.filter((column) => column.unit === "ns" && column.name !== "start_ns");
  const [name, choose] = useChoice("show.steps.field", choices.map((column) => column.name), "wall_ns");
  const metric = columnIndex(steps, name);
  const field = fieldOf(steps, metric);
  if (field.columns.length === 0) return null;
  return (
    <>
      <h3>
        Ranks and steps by{" "}
        <select aria-label="what the field shows" onChange={(event) => choose(event.currentTarget.value)}>
          {choices.map((column) => (
            <option value={column.name} selected={column.name === name}>
              {words(partName(column))}
            </option>
          ))}
        </select>
      </h3>
      <HeatMap label={`${partName(steps.columns[metric]!)} of each rank and step`} columns={field.columns} rows={field.rows} unit="ns" />
    </>
  );
}

function View(props: { report: Report }) {
  const answer = props.report.answers.steps!;
  const steps = table(props.report, "steps", "steps");
  const breakdown = table(props.report, "steps", "breakdown");
  const longest = steps ? longestWall(steps) : 0;
  const groups = steps ? [...rowsByRank(steps)] : [];
  return (
    <>
      {breakdown && breakdown.rows.length > 0 && (
        <>
          <h3>The mean step, part by part</h3>
          <StackedBar label="mean step" parts={breakdownParts(breakdown)} unit="ns" />
        </>
      )}
      {steps && groups.length > 1 && <Field steps={steps} />}
      {steps &&
        groups.slice(0, groups.length > MAX_CHARTS ? 1 : MAX_CHARTS).map(([rank, rows]) => (
          <>
            <h3>Wall time of each step{groups.length > 1 ? `, rank ${rank}` : ""}</h3>
            <UprightBars label={`steps${groups.length > 1 ? ` of rank ${rank}` : ""}`} bars={uprights(steps, rows)} unit="ns" most={longest} />
          </>
        ))}
      {groups.length > MAX_CHARTS && <p class="soft">The parts of the other {groups.length - 1} ranks are in the table.</p>}
      {steps && steps.rows.some((row) => row[columnIndex(steps, "partial")] === true) && (
        <p class="soft">Pale: steps cut by the edge of the recording; they count in no mean.</p>
      )}
      <TabbedTables name="steps" answer={answer} tables={["steps", ...Object.keys(answer.tables).filter((name) => name !== "steps" && name !== "phases")]} first={8} />
      <Rest name="steps" answer={answer} shown={{ tables: Object.keys(answer.tables) }} />
    </>
  );
}

export const steps: Panel = {
  id: "steps",
  label: "Steps",
  title: "What is a step made of?",
  shows: ["steps"],
  applies: (report) => report.answers.steps !== undefined,
  view: View,
};

