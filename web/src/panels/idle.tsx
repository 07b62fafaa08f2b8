// Why the device is idle: causes as bars, then what the host did meanwhile and the longest gaps.
import type { Report, Table, Value } from "../data/report";
import { asNumber, columnIndex, knowsSomething, rowsByRank, table } from "../data/report";
import { TabbedTables } from "../draw/answer";
import { BarList } from "../draw/bar_list";
import type { Bar } from "../draw/bar_list";
import { partColor } from "../draw/color";
import type { Panel } from "../draw/panel";
import { Figures, Notes } from "../draw/parts";

const MAX_RANKS = 8;
const TABLES = ["by_op", "gaps", "causes"];

function causeBars(causes: Table, rows: Value[][]): Bar[] {
  const at = (row: Value[], name: string) => row[columnIndex(causes, name)] ?? null;
  const several = new Set(rows.map((row) => at(row, "device"))).size > 1;
  return rows.filter((row) => (asNumber(at(row, "idle_span_ns")) ?? 0) > 0).map((row) => ({
    name: String(at(row, "cause")) + (several ? `, device ${at(row, "device")}` : ""),
    value: asNumber(at(row, "idle_span_ns")) ?? 0,
    share: asNumber(at(row, "share_of_span")),
    color: partColor(String(at(row, "cause"))),
    note: String(at(row, "meaning") ?? ""),
  }));
}

function View(props: { report: Report }) {
  const answer = props.report.answers.idle!;
  const causes = table(props.report, "idle", "causes");
  const groups = causes ? [...rowsByRank(causes)] : [];
  const names = [...TABLES.filter((name) => answer.tables[name]), ...Object.keys(answer.tables).filter((name) => !TABLES.includes(name))];
  return (
    <>
      {causes &&
        groups.slice(0, MAX_RANKS).map(([rank, rows]) => (
          <>
            <h3>Idle time by cause, share of the time from the first to the last device work{groups.length > 1 ? `, rank ${rank}` : ""}</h3>
            <BarList label="idle time by cause" bars={causeBars(causes, rows)} unit="ns" />
          </>
        ))}
      <Figures scalars={answer.scalars} />
      <TabbedTables name="idle" answer={answer} tables={names} first={8} />
      <Notes answer={answer} />
    </>
  );
}

export const idle: Panel = {
  id: "idle",
  label: "Idle time",
  title: "Why is the device idle?",
  shows: ["idle"],
  applies: (report) => knowsSomething(report.answers.idle),
  view: View,
};
