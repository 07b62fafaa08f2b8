// Which operators cost: by name, by shape, by place in the code.
import type { Report } from "../data/report";
import { Rest, TabbedTables } from "../draw/answer";
import type { Panel } from "../draw/panel";

function View(props: { report: Report }) {
  const answer = props.report.answers.operators!;
  return (
    <>
      <TabbedTables name="operators" answer={answer} />
      <Rest name="operators" answer={answer} shown={{ tables: Object.keys(answer.tables) }} />
    </>
  );
}

export const operators: Panel = {
  id: "operators",
  label: "Operators",
  title: "Which operators cost?",
  shows: ["operators"],
  applies: (report) => report.answers.operators !== undefined,
  view: View,
};
