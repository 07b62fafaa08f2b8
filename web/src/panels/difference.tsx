// What changed between two runs: what was found, the figures, the change of the step as a waterfall, the tables.
import { Rest } from "../draw/answer";
import { FindingList } from "../draw/findings";
import type { Panel } from "../draw/panel";
import { Figures } from "../draw/parts";
import { DataTable } from "../draw/table";
import { Waterfall } from "../draw/waterfall";

export const difference: Panel = {
  id: "diff",
  label: "Difference",
  title: "What changed, and is it more than noise?",
  shows: ["diff"],
  applies: (report) => report.answers.diff !== undefined,
  view: ({ report }) => {
    const answer = report.answers.diff!;
    const { waterfall } = answer.tables;
    const nameOf = (column: string, other: string) => waterfall?.columns.find((one) => one.name === column)?.label ?? other;
    return (
      <>
        {answer.findings.length > 0 && <FindingList findings={answer.findings} />}
        <Figures scalars={answer.scalars} />
        {waterfall !== undefined && waterfall.rows.length > 0 && (
          <>
            <h3>What the change of the step consists of</h3>
            <Waterfall label="from step to step" table={waterfall} names={[nameOf("a_ns", "A"), nameOf("b_ns", "B")]} />
            <details class="more-figures">
              <summary>as a table</summary>
              <DataTable name="diff.waterfall" table={waterfall} />
            </details>
          </>
        )}
        <Rest name="diff" answer={answer} shown={{ scalars: Object.keys(answer.scalars), tables: ["waterfall"] }} />
      </>
    );
  },
};
