// The few figures that say whether the run is healthy, where the device's time went, and how good the
// data is that says so.
import type { Answer, Issue, Report, Table, Value } from "../data/report";
import { asNumber, columnIndex } from "../data/report";
import { BarList } from "../draw/bar_list";
import { StackedBar } from "../draw/bars";
import type { Part } from "../draw/bars";
import { partColor } from "../draw/color";
import { formatNumber } from "../draw/format";
import { TabbedTables } from "../draw/answer";
import type { Panel } from "../draw/panel";
import { Card, Figures, Notes } from "../draw/parts";

const MAX_FAMILIES = 6; // the page of kernels has them all
const MAX_BARS = 16; // devices drawn; the table has them all

/** One line: what is odd in the input, and what was not recorded at all. */
function Quality(props: { report: Report }) {
  const { issues, answers } = props.report;
  const missing = answers.quality?.tables.missing;
  const what = [...new Set((missing?.rows ?? []).map((row) => String(row[columnIndex(missing!, "what")])))]; // of any rank
  const odd = [counted(issues, "repaired", "repair"), counted(issues, "info", "note")].filter(Boolean);
  return (
    <p class="soft" data-part="quality">
      <b>Data:</b> {issues.some((issue) => issue.severity === "lost") ? "partial" : "nothing was lost"}
      {odd.length > 0 && `, ${odd.join(", ")}`}
      {what.length > 0 && <>; not recorded: {what.join(", ")}</>}. <a href="#quality">How good the data is</a>
    </p>
  );
}

function counted(issues: Issue[], severity: Issue["severity"], word: string): string {
  const count = issues.filter((issue) => issue.severity === severity).length;
  return count === 0 ? "" : `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** Figures of other answers that stand beside the overview's where they are known. */
const BESIDE: [answer: string, name: string, label: string][] = [
  ["utilization", "sm_efficiency", "SM efficiency"],
  ["utilization", "tensor_core_share", "tensor core share"],
  ["flops", "mfu", "MFU"],
  ["memory", "peak_device_bytes", "peak memory"],
];

function besideCards(report: Report, window: string) {
  return BESIDE.map(([answer, name, label]) => {
    const scalars = report.answers[answer]?.scalars;
    return [name, label, scalars?.[`${name}_${window}`] ?? scalars?.[name]] as const;
  }).filter(([, , scalar]) => scalar !== undefined && scalar.value !== null);
}

/** The figures of the headline's window: the steps where there are enough, else the whole recording. */
function Cards(props: { report: Report; overview: Answer }) {
  const { scalars } = props.overview;
  const window = scalars.window?.value === "span" ? "span" : "steps";
  const cards: [string, string][] = [
    ["step_time_median_ns", "step time (median)"],
    [`gpu_utilization_${window}`, "device busy"],
    [window === "span" ? "communication_hidden_ratio" : "communication_hidden_ratio_steps", "communication hidden"],
    [`communication_exposed_${window}_ns`, "communication exposed"],
    [`idle_${window}_ns`, "device idle"],
  ];
  const known = cards.filter(([name]) => scalars[name] !== undefined);
  const shown = known.length > 0 ? known : Object.keys(scalars).slice(0, 8).map((name): [string, string] => [name, name]);
  const unknown = shown.filter(([name]) => scalars[name]?.value === null);
  const reasons = [...new Set(unknown.map(([name]) => scalars[name]!.meaning))];
  return (
    <>
      <div class="cards">
        {shown
          .filter(([name]) => scalars[name]?.value !== null)
          .map(([name, label]) => (
            <Card
              name={name}
              label={label}
              scalar={scalars[name]}
              of={name.endsWith(`_${window}_ns`) ? scalars[`${window}_ns`] : undefined}
            />
          ))}
        {besideCards(props.report, window).map(([name, label, scalar]) => (
          <Card name={name} label={label} scalar={scalar} />
        ))}
      </div>
      {reasons.map((reason) => (
        <p class="unknown-cards">
          <b>
            {unknown
              .filter(([name]) => scalars[name]!.meaning === reason)
              .map(([, label]) => label)
              .join(", ")}
            : unknown.
          </b>{" "}
          {reason}
        </p>
      ))}
    </>
  );
}

function breakdownBars(breakdown: Table): Map<string, Part[]> {
  const at = (name: string) => columnIndex(breakdown, name);
  const bars = new Map<string, Part[]>();
  for (const row of breakdown.rows) {
    const device = row[at("device")] ?? null;
    const label = `rank ${String(row[at("rank")])}${device === null ? "" : `, device ${device}`}`;
    const bar = bars.get(label) ?? [];
    bar.push({ name: String(row[at("part")] ?? ""), value: asNumber(row[at("time_ns")]) });
    bars.set(label, bar);
  }
  return bars;
}

function Breakdown(props: { overview: Answer }) {
  const breakdown = props.overview.tables.breakdown;
  if (!breakdown || breakdown.rows.length === 0) return null;
  const bars = [...breakdownBars(breakdown)];
  const about = props.overview.scalars.window?.meaning;
  const length = (parts: Part[]) => parts.reduce((sum, part) => sum + (part.value ?? 0), 0);
  return (
    <>
      <h3 title={about}>Where the time goes</h3>
      {bars.slice(0, MAX_BARS).map(([label, parts]) => (
        <>
          {bars.length > 1 && <p class="soft">{`${label}, ${formatNumber(length(parts), "ns")}`}</p>}
          <StackedBar label={label} parts={parts} unit="ns" />
        </>
      ))}
      {bars.length > MAX_BARS && <p class="soft">Drawn: {MAX_BARS} of {bars.length} devices.</p>}
      {about && <p class="soft">{about}.</p>}
    </>
  );
}

function Families(props: { families: Table | undefined }) {
  const { families } = props;
  if (!families || families.rows.length === 0) return null;
  const at = (row: Value[], name: string) => row[columnIndex(families, name)] ?? null;
  return (
    <>
      <h3>What the device runs</h3>
      <BarList
        label="families of device work"
        unit="ns"
        most={MAX_FAMILIES}
        bars={families.rows.map((row) => ({
          name: String(at(row, "family")),
          value: asNumber(at(row, "total_ns")) ?? 0,
          share: asNumber(at(row, "share")),
          color: partColor(String(at(row, "class"))),
          note: `${at(row, "class")}, ${at(row, "count")} times`,
        }))}
      />
    </>
  );
}

function View(props: { report: Report }) {
  const { overview } = props.report.answers;
  if (overview === undefined) return null;
  return (
    <>
      <Cards report={props.report} overview={overview} />
      <Breakdown overview={overview} />
      <Quality report={props.report} />
      <Families families={overview.tables.top_families} />
      <details class="more-figures">
        <summary>All figures and tables of the overview</summary>
        <Figures scalars={overview.scalars} />
        <TabbedTables name="overview" answer={overview} />
      </details>
      <Notes answer={overview} />
    </>
  );
}

export const health: Panel = {
  id: "overview",
  label: "Overview",
  title: "Is the run healthy, and where does its time go?",
  shows: ["overview"],
  applies: (report) => report.answers.overview !== undefined,
  view: View,
};
