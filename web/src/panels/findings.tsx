// What to change first: the findings of all answers.
import type { Finding, Report } from "../data/report";
import { FindingList } from "../draw/findings";
import type { Panel } from "../draw/panel";

const DOUBT: Record<string, number> = { high: 0, medium: 1 };
const doubt = (finding: Finding) => DOUBT[finding.confidence ?? ""] ?? 2;

/**
 * What is sure comes first; of the same confidence in the order of the answers. What is found about a difference of runs
 * stands in its panel: it says what changed, not what to change.
 */
export function allFindings(report: Report): Finding[] {
  const all = Object.entries(report.answers).flatMap(([name, answer]) => (name === "diff" ? [] : answer.findings));
  return all.sort((a, b) => doubt(a) - doubt(b));
}

export const findings: Panel = {
  id: "findings",
  label: "Findings",
  title: "What to change first",
  shows: [],
  applies: (report) => allFindings(report).length > 0,
  view: ({ report }) => <FindingList findings={allFindings(report)} />,
};
