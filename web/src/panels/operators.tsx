// Which operators cost: by name, by shape, by place in the code.
import type { Report } from "../data/report";
import { knowsSomething } from "../data/report";
import { TabbedTables } from "../draw/answer";
import { Figures, Notes } from "../draw/parts";
import type { Panel } from "../draw/panel";

function View(props: { report: Report }) {
  const answer = props.report.answers.operators!;
  return (
    <>
      <Figures scalars={answer.scalars} />
      <TabbedTables name="operators" answer={answer} />
      <Notes answer={answer} />
    </>
  );
}

export const operators: Panel = {
  id: "operators",
  label: "Operators",
  title: "Which operators cost?",
  shows: ["operators"],
  applies: (report) => knowsSomething(report.answers.operators),
  view: View,
};
