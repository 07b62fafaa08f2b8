// Findings as a list: each a sentence, its evidence, the gain to expect and the next step.
import { useContext, useEffect, useRef } from "preact/hooks";
import type { Finding, Gain, Place } from "../data/report";
import { formatValue } from "./format";
import { PageLinks } from "./page_links";
import { Said } from "./said";

function placeText(where: Place | null | undefined): string {
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

// "steps of 84.1 ms should take 59.2 ms to 67.3 ms"
function stepText(now: number, gain: Gain): string {
  const shown = (ns: number) => formatValue(ns, "ns");
  const [least, most] = [shown(now / gain.speedup_high), shown(now / gain.speedup_low)];
  return `steps of ${shown(now)} should take ${least === most ? "" : `${least} to `}${most}`;
}

function About(props: { finding: Finding }) {
  const { finding } = props;
  const place = placeText(finding.where);
  const { moment } = useContext(PageLinks);
  const at = finding.where?.t_ns ?? null;
  const address = at === null || !moment ? null : moment({ rank: finding.where?.rank ?? null, start: at, duration: null });
  return (
    <>
      <p class="about">
        <span>
          <Said text={gainText(finding)} />
        </span>
        {finding.confidence && (
          <span>
            {finding.confidence} confidence
            {finding.confidence_reason && `: ${finding.confidence_reason}`}
          </span>
        )}
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
      {finding.gain?.step_ns && (
        <p class="next">
          <b>To check it:</b> record again, then <code>stepscope diff BEFORE AFTER</code>: {stepText(finding.gain.step_ns, finding.gain)}.
        </p>
      )}
    </>
  );
}

/** What is folded is printed as well. */
function Folded(props: { finding: Finding }) {
  const { finding } = props;
  const element = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    let wasOpen = false;
    const open = () => {
      wasOpen = element.current!.open;
      element.current!.open = true;
    };
    const close = () => (element.current!.open = wasOpen);
    addEventListener("beforeprint", open);
    addEventListener("afterprint", close);
    return () => {
      removeEventListener("beforeprint", open);
      removeEventListener("afterprint", close);
    };
  }, []);
  return (
    <details ref={element}>
      <summary class="sentence">
        {finding.sentence}
        {finding.gain && <span class="soft"> {gainText(finding)}</span>}
      </summary>
      <About finding={finding} />
    </details>
  );
}

/** `brief`: of each only the sentence and the gain are in sight, and the rest opens. */
export function FindingList(props: { findings: Finding[]; brief?: boolean; start?: number }) {
  const count = new Map<string, number>();
  const keyOf = ({ id }: Finding) => {
    count.set(id, (count.get(id) ?? 0) + 1);
    return `${id} ${count.get(id)}`;
  };
  return (
    <ol class="findings" start={props.start}>
      {props.findings.map((finding) => (
        <li class="finding" data-finding={finding.id} key={keyOf(finding)}>
          {props.brief ? (
            <Folded finding={finding} />
          ) : (
            <>
              <p class="sentence">{finding.sentence}</p>
              <About finding={finding} />
            </>
          )}
        </li>
      ))}
    </ol>
  );
}
