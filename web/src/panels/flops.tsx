// How much arithmetic was done: by pass, operator, type and step. By module it stands with the modules.
import type { Report } from "../data/report";
import { table } from "../data/report";
import { Rest } from "../draw/answer";
import type { Panel } from "../draw/panel";

function View(props: { report: Report }) {
  return <Rest name="flops" answer={props.report.answers.flops!} shown={{ tables: ["by_module"] }} />;
}

export const flops: Panel = {
  id: "flops",
  label: "FLOP",
  title: "How much of the machine's arithmetic is used, and where?",
  shows: ["flops"],
  applies: (report) => (table(report, "flops", "by_part")?.rows.length ?? 0) > 0,
  view: View,
};
