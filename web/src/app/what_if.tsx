// What changes would be worth: a line per change, predicted by the server from the recording. The changes that were asked
// for stand in the page's address.
import { parseReport } from "../data/load";
import type { Answer, Table } from "../data/report";
import { asNumber, columnIndex } from "../data/report";
import { formatRoute } from "../data/route";
import { askWhatIf } from "../data/server";
import type { RunState } from "../data/server";
import { Rest } from "../draw/answer";
import { useDraft } from "../draw/draft";
import { formatNumber } from "../draw/format";
import { FaultBox, Waiting, useAsked } from "./asking";
import { Editor } from "./editor";
import { navigate } from "./navigation";
import type { ViewProps } from "./own_views";

const MOST_BUTTONS = 12;
const WORTH_A_TRY = 1.005; // less is within what a prediction can tell

function useWhatIf(state: RunState, changes: string | null) {
  return useAsked(
    changes === null ? null : (signal) => askWhatIf(state, changes, signal).then((text) => ({ changes, answer: parseReport(text).answers.what_if ?? null })),
    [state.id, state.revision, changes],
  );
}

const scalar = (answer: Answer, name: string) => answer.scalars[name]?.value ?? null;

function Headline(props: { answer: Answer }) {
  const [now, low, high, least, most] = ["step_ns", "predicted_low_ns", "predicted_high_ns", "speedup_low", "speedup_high"].map((name) =>
    asNumber(scalar(props.answer, name)),
  );
  const binds = scalar(props.answer, "binds");
  if (now == null) return null;
  const then = typeof binds === "string" && binds !== "" ? `, ${low == null ? "bound" : "then bound"} by ${binds}` : "";
  if (low == null || high == null) return <p class="headline">A step takes {formatNumber(now, "ns")} in the mean{then}.</p>;
  const range = low === high ? formatNumber(low, "ns") : `${formatNumber(low, "ns")} to ${formatNumber(high, "ns")}`;
  const times = least == null || most == null ? "" : ` (${least === most ? "" : `${least.toFixed(2)}× to `}${most.toFixed(2)}× as fast)`;
  return (
    <p class="headline">
      A step of {formatNumber(now, "ns")} (the mean) would take <b>{range}</b>
      {times}
      {then}.
    </p>
  );
}

/** The changes that are worth something by themselves, most first. */
function worthATry(candidates: Table | undefined): string[] {
  if (candidates === undefined) return [];
  const [change, most] = [columnIndex(candidates, "change"), columnIndex(candidates, "speedup_high")];
  return candidates.rows
    .filter((row) => (asNumber(row[most] ?? null) ?? 0) >= WORTH_A_TRY)
    .map((row) => String(row[change]))
    .slice(0, MOST_BUTTONS);
}

export function WhatIfPage(props: ViewProps) {
  const { run, state, route } = props;
  const changes = route.params.changes ?? "";
  const [text, setText] = useDraft(changes);
  const now = useWhatIf(state, "");
  const changed = useWhatIf(state, changes === "" ? null : changes);
  const asked = changes === "" ? now : changed;
  const answer = asked.value?.changes === changes ? asked.value.answer : null;
  const start = (wanted: string) => navigate({ view: "what_if", params: { run: run.id, changes: wanted.trim() } });
  const tries = worthATry(now.value?.answer?.tables.candidates);
  const lines = text.split("\n").map((line) => line.trim());
  return (
    <main id="main" class="query">
      <h2>What would a change be worth?</h2>
      <Editor
        label="changes, one a line"
        hint={"one change a line, such as\nscale kernel:gemm=0.5\nremove op:aten::sort"}
        rows={4}
        text={text}
        onText={setText}
        run="Predict"
        onRun={start}
      >
        <span class="soft">Ctrl + Enter. Nothing runs: it is predicted from the recording.</span>
        {changes !== "" && answer !== null && text.trim() === changes && <a href={formatRoute({ view: "timeline", params: { run: run.id, changes } })}>On the timeline, beside the recording</a>}
        {changes !== "" && (
          <button type="button" onClick={() => start("")}>
            without changes
          </button>
        )}
      </Editor>
      {tries.length > 0 && (
        <p class="query-tools">
          <span class="soft">Worth a try, most first:</span>
          {tries.map((change) => (
            <button
              type="button"
              aria-pressed={lines.includes(change)}
              onClick={() => start([...lines.filter((line) => line !== "" && line !== change), ...(lines.includes(change) ? [] : [change])].join("\n"))}
            >
              {change}
            </button>
          ))}
        </p>
      )}
      {/^ranks\b/m.test(changes) && (
        <p class="soft">
          The further ranks stand on a ring of the same links. Another network, from a file, is taken by the command line alone: “stepscope what-if PATH --ranks N --topology FILE”.
        </p>
      )}
      {asked.error !== null && <FaultBox error={asked.error} />}
      {asked.error === null && answer === null && <Waiting what="The recording is being played" share={null} />}
      {asked.error === null && answer !== null && (
        <div key={changes}>
          <Headline answer={answer} />
          <Rest name="what_if" answer={answer} shown={{ scalars: ["step_ns", "predicted_low_ns", "predicted_high_ns", "speedup_low", "speedup_high", "binds"] }} />
        </div>
      )}
    </main>
  );
}
