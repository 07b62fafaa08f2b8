// What to change first: each finding as a sentence, its evidence, the gain to expect and the next step.
import type { Finding, Place, Report } from "../data/report";
import { useContext } from "preact/hooks";
import { formatValue } from "../draw/format";
import { PageLinks } from "../draw/page_links";
import { Said } from "../draw/said";
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

export function placeText(where: Place | null | undefined): string {
  if (!where) return "";
  const parts = [
    where.rank != null ? `rank ${where.rank}` : "",
    where.phase ?? "",
    where.module ?? "",
    where.op ?? "",
    where.function ?? "",
    where.file ? `${where.file}${where.line != null ? `:${where.line}` : ""}` : "",
  ];
  return parts.filter(Boolean).join(" · ");
}

function gainText(finding: Finding): string {
  if (finding.gain) {
    const { speedup_low: low, speedup_high: high, binds, how } = finding.gain;
    const then = binds ? `, then bound by ${binds}` : "";
    const [least, most] = [low.toFixed(2), high.toFixed(2)];
    const steps = most === "1.00" ? "steps as fast as now" : `steps ${least === most ? "" : `${least}× to `}${most}× as fast`;
    return `${steps}${then}${how ? ` (${how})` : ""}`;
  }
  return finding.gain_reason ? `gain unknown: ${finding.gain_reason}` : "gain unknown";
}

function One(props: { finding: Finding }) {
  const { finding } = props;
  const place = placeText(finding.where);
  const { moment } = useContext(PageLinks);
  const at = finding.where?.t_ns ?? null;
  const address = at === null || !moment ? null : moment({ rank: finding.where?.rank ?? null, start: at, duration: null });
  return (
    <li class="finding" data-finding={finding.id}>
      <p class="sentence">{finding.sentence}</p>
      <p class="about">
        <span>
          <Said text={gainText(finding)} />
        </span>
        {finding.confidence && <span>{finding.confidence} confidence</span>}
        {place && <span>{place}</span>}
        {address !== null && <a href={address}>show on the timeline</a>}
      </p>
      {(finding.evidence ?? []).length > 0 && (
        <ul class="evidence">
          {finding.evidence!.map((item) => (
            <li>
              <span class="text" title={item.text}>
                {item.text}
              </span>
              {item.value !== null && (
                <>
                  <b>{formatValue(item.value, item.unit)}</b>
                </>
              )}
              {item.query && <code>{item.query}</code>}
            </li>
          ))}
        </ul>
      )}
      {finding.next && (
        <p class="next">
          <b>Next:</b> <Said text={finding.next} />
        </p>
      )}
    </li>
  );
}

export function FindingList(props: { findings: Finding[] }) {
  return (
    <ol class="findings">
      {props.findings.map((finding) => (
        <One finding={finding} />
      ))}
    </ol>
  );
}

export const findings: Panel = {
  id: "findings",
  label: "Findings",
  title: "What to change first",
  shows: [],
  applies: (report) => allFindings(report).length > 0,
  view: ({ report }) => <FindingList findings={allFindings(report)} />,
};
