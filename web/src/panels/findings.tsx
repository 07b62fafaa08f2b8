// What to change first: the findings of all answers.
import type { Answer, Finding, Report } from "../data/report";
import { asNumber } from "../data/report";
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

// As in a terminal: src/model/finding_order.h, src/report/advice.cc.
const WORTH_ADVICE = 1.03; // steps so many times as fast
const TELLING = 0.03; // of the step, what recording cost
const OFFER = "An offer and no fault"; // how the reason begins why one that changes what is computed has no gain

function isWorthIt({ gain }: Finding): boolean {
  return gain != null && (gain.speedup_low + gain.speedup_high) / 2 >= WORTH_ADVICE;
}

/** Findings whose fix is worth a change, and the others: what other answers say of a cause that advice explains, too. */
export function byWorth(report: Report): { first: Finding[]; rest: Finding[] } {
  const advice = report.answers.advice?.findings ?? [];
  const explained = new Set(advice.flatMap(({ gain, cause }) => (gain ? [cause] : [])));
  const isFirst = (finding: Finding) => isWorthIt(finding) && (advice.includes(finding) || !explained.has(finding.cause));
  const all = allFindings(report);
  return { first: all.filter(isFirst), rest: all.filter((one) => !isFirst(one)) };
}

function boundBy(report: Report): string | null {
  const by = report.answers.advice?.scalars.bound_by?.value ?? null;
  return by === null ? null : String(by);
}

/** "Step 84.1 ms, bound by the main thread of rank 0 (70 % of what bounds it)." */
function Bound(props: { advice: Answer; by: string; any: boolean; anyOffer: boolean }) {
  const { bound_share: share, step_ns: step, recording_ns: recording } = props.advice.scalars;
  const [usual, more] = [asNumber(step?.value ?? null), asNumber(recording?.value ?? null)];
  const isRecordedLonger = usual !== null && more !== null && Math.abs(more) >= TELLING * usual;
  return (
    <p>
      Step <b>{formatValue(step?.value, "ns")}</b>, bound by <b>{props.by}</b>
      {share && ` (${formatValue(share.value, share.unit)} of what bounds it)`}.
      {isRecordedLonger && ` Recorded steps took ${formatValue(usual + more, "ns")}; figures here are of the job's other steps.`}
      {!props.any &&
        ` Nothing was found that is worth more than ${Math.round(100 * (WORTH_ADVICE - 1))} %${props.anyOffer ? " and leaves what is computed as it is" : ""}.`}
    </p>
  );
}

function View(props: { report: Report }) {
  const { advice } = props.report.answers;
  const { first, rest } = byWorth(props.report);
  const by = boundBy(props.report);
  const anyOffer = rest.some((one) => one.gain_reason?.startsWith(OFFER));
  if (first.length === 0 && by === null) return <FindingList findings={rest} />; // nothing tells what they are worth
  return (
    <>
      {advice && by !== null && <Bound advice={advice} by={by} any={first.length > 0 || rest.some(isWorthIt)} anyOffer={anyOffer} />}
      {first.length > 0 && <FindingList findings={first} />}
      {rest.length > 0 && (
        <>
          <h3>Also seen: worth less, not predicted, or explained above</h3>
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
  applies: (report) => allFindings(report).length > 0 || boundBy(report) !== null,
  view: View,
};
