// Which kernels take the device's time: families as bars, then the kernels themselves.
import type { Report, Table, Value } from "../data/report";
import { asNumber, columnIndex, knowsSomething, rowsByRank, table } from "../data/report";
import { BarList } from "../draw/bar_list";
import type { Bar } from "../draw/bar_list";
import { partColor } from "../draw/color";
import { TabbedTables } from "../draw/answer";
import { Figures, Notes } from "../draw/parts";
import type { Panel } from "../draw/panel";

const MAX_RANKS = 4;

function familyBars(families: Table, rows: Value[][]): Bar[] {
  const at = (name: string) => columnIndex(families, name);
  const device = at("device");
  const several = new Set(rows.map((row) => row[device] ?? null)).size > 1;
  return rows.map((row) => {
    const kind = String(row[at("class")] ?? "");
    const family = row[at("family")] ?? null;
    return {
      name: (family === null ? `no rule (${kind})` : String(family)) + (several ? `, device ${row[device]}` : ""),
      value: asNumber(row[at("total_ns")]) ?? 0,
      share: asNumber(row[at("share")]),
      color: partColor(kind),
      note: String(row[at("why")] ?? ""),
    };
  });
}

function View(props: { report: Report }) {
  const answer = props.report.answers.kernels!;
  const families = table(props.report, "kernels", "families");
  const groups = families ? [...rowsByRank(families)] : [];
  return (
    <>
      <Figures scalars={answer.scalars} />
      {families &&
        groups.slice(0, MAX_RANKS).map(([rank, rows]) => (
          <>
            <h3>Device time by family{groups.length > 1 ? `, rank ${rank}` : ""}</h3>
            <BarList label="device time by family" bars={familyBars(families, rows)} unit="ns" />
          </>
        ))}
      <TabbedTables name="kernels" answer={answer} tables={order(Object.keys(answer.tables))} />
      <Notes answer={answer} />
    </>
  );
}

function order(names: string[]): string[] {
  return names.includes("kernels") ? ["kernels", ...names.filter((name) => name !== "kernels")] : names;
}

export const kernels: Panel = {
  id: "kernels",
  label: "Kernels",
  title: "Which kernels take the device's time?",
  shows: ["kernels"],
  applies: (report) => knowsSomething(report.answers.kernels),
  view: View,
};
