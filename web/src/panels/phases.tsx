// Where a step's time goes by phase of the program: per step, the host's phases stacked and the device's in a second
// chart.
import type { Report, Table, Value } from "../data/report";
import { asNumber, columnIndex, rowsByRank, table } from "../data/report";
import { Legend, StackedBar, UprightBars } from "../draw/bars";
import type { Upright } from "../draw/bars";
import { DataTable } from "../draw/table";
import { Tabs } from "../draw/tabs";
import type { Panel } from "../draw/panel";

const MAX_RANKS = 8;

function uprights(phases: Table, rows: Value[][], value: string): Upright[] {
  const [step, phase, at] = [columnIndex(phases, "step"), columnIndex(phases, "phase"), columnIndex(phases, value)];
  const bars = new Map<Value, Upright>();
  for (const row of rows) {
    const label = String(row[step] ?? "");
    const bar = bars.get(label) ?? { label: label.replace(/^.*#/, ""), parts: [] };
    bar.parts.push({ name: String(row[phase] ?? ""), value: asNumber(row[at]) });
    bars.set(label, bar);
  }
  return [...bars.values()];
}

function Charts(props: { phases: Table; value: string }) {
  const { phases, value } = props;
  const groups = [...rowsByRank(phases)];
  const at = columnIndex(phases, "phase");
  const names = [...new Set(phases.rows.map((row) => String(row[at] ?? "")))];
  if (!phases.rows.some((row) => (asNumber(row[columnIndex(phases, value)]) ?? 0) > 0)) return <p class="empty">Nothing was recorded.</p>;
  return (
    <>
      <Legend parts={names.map((name) => ({ name, value: null }))} />
      {groups.slice(0, MAX_RANKS).map(([rank, rows]) => (
        <>
          {groups.length > 1 && <h3>rank {String(rank)}</h3>}
          <UprightBars label={`phases of each step${groups.length > 1 ? `, rank ${rank}` : ""}`} bars={uprights(phases, rows, value)} unit="ns" />
        </>
      ))}
      {value === "device_ns" && <p class="soft">Work of two phases can run at the same time; then a bar is higher than the step.</p>}
    </>
  );
}

/** The mean step of each rank by the host's phase, as the overview gives it; its parts add up. */
function MeanSteps(props: { mean: Table }) {
  const { mean } = props;
  const groups = [...rowsByRank(mean)];
  const at = (row: Value[], name: string) => row[columnIndex(mean, name)] ?? null;
  return (
    <>
      <h3>The host in the mean step</h3>
      {groups.slice(0, MAX_RANKS).map(([rank, rows]) => (
        <>
          {groups.length > 1 && <p class="soft">rank {String(rank)}</p>}
          <StackedBar
            label={`phases of the mean step of rank ${rank}`}
            unit="ns"
            parts={rows.map((row) => ({ name: String(at(row, "phase")), value: asNumber(at(row, "host_ns")) }))}
          />
        </>
      ))}
    </>
  );
}

function View(props: { report: Report }) {
  const phases = table(props.report, "steps", "phases")!;
  const mean = table(props.report, "overview", "phases");
  return (
    <>
      {mean && mean.rows.length > 0 && <MeanSteps mean={mean} />}
      <h3>Step by step</h3>
      <Tabs
        name="phases"
        label="host or device"
        tabs={[
          { name: "host", label: "on the host", view: () => <Charts phases={phases} value="host_ns" /> },
          { name: "device", label: "on the device", view: () => <Charts phases={phases} value="device_ns" /> },
        ]}
      />
      <DataTable name="steps.phases" table={phases} source="steps_phases" />
    </>
  );
}

export const phases: Panel = {
  id: "phases",
  label: "Phases",
  title: "Which phase takes the time?",
  shows: ["steps.phases"],
  applies: (report) => (table(report, "steps", "phases")?.rows.length ?? 0) > 0,
  view: View,
};
