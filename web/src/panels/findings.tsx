// What to change first: the findings of all answers.
import type { Answer, Finding, Report } from "../data/report";
import { FindingList } from "../draw/findings";
import { formatValue } from "../draw/format";
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

const WORTH_A_CHANGE = 1.03; // steps so many times as fast, as in a terminal

function isWorthIt({ gain }: Finding): boolean {
  return gain != null && (gain.speedup_low + gain.speedup_high) / 2 >= WORTH_A_CHANGE;
}

/** "Step 84.1 ms, bound by the main thread of rank 0 (70 % of what bounds it)." */
function Bound(props: { advice: Answer; any: boolean }) {
  const { bound_by: by, bound_share: share, step_ns: step } = props.advice.scalars;
  if (!by || by.value === null || !step) return null;
  return (
    <p>
      Step <b>{formatValue(step.value, step.unit)}</b>, bound by <b>{String(by.value)}</b>
      {share && ` (${formatValue(share.value, share.unit)} of what bounds it)`}.
      {!props.any && ` Nothing was found that is worth more than ${formatValue(WORTH_A_CHANGE - 1, "ratio")}.`}
    </p>
  );
}

function View(props: { report: Report }) {
  const { advice } = props.report.answers;
  const all = allFindings(props.report);
  const [first, rest] = [all.filter(isWorthIt), all.filter((one) => !isWorthIt(one))];
  return (
    <>
      {advice && <Bound advice={advice} any={first.length > 0} />}
      {first.length > 0 && <FindingList findings={first} />}
      {rest.length > 0 && (
        <>
          {first.length > 0 && <h3>Also seen, worth less or not predicted</h3>}
          <FindingList findings={rest} brief start={first.length + 1} />
        </>
      )}
    </>
  );
}

export const findings: Panel = {
  id: "findings",
  label: "Findings",
  title: "What to change first",
  shows: [],
  applies: (report) => allFindings(report).length > 0,
  view: View,
};
