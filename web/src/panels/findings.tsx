// What to change first: the findings of all answers.
import type { Finding, Report } from "../data/report";
import { FindingList } from "../draw/findings";
import type { Panel } from "../draw/panel";

/**
 * What is worth most comes first, as the report orders it; one that has no order is shown as its answers come. What is
 * found about a difference of runs stands in its panel: it says what changed, not what to change.
 */
export function allFindings(report: Report): Finding[] {
  const ordered = (report.findings_by_worth ?? []).flatMap(([name, index]) => report.answers[name]?.findings[index] ?? []);
  if (ordered.length > 0) return ordered;
  return Object.entries(report.answers).flatMap(([name, answer]) => (name === "diff" ? [] : answer.findings));
}

export const findings: Panel = {
  id: "findings",
  label: "Findings",
  title: "What to change first",
  shows: [],
  applies: (report) => allFindings(report).length > 0,
  view: ({ report }) => <FindingList findings={allFindings(report)} />,
};
