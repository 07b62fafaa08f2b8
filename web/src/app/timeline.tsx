// The page of the timeline: asks for its lanes, and draws it in the whole window.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { formatRoute } from "../data/route";
import { parseReport } from "../data/load";
import { asNumber } from "../data/report";
import { askTimeline, askWhatIf } from "../data/server";
import type { RunState } from "../data/server";
import { formatNumber } from "../draw/format";
import { momentParams } from "../timeline/moment";
import { PageState } from "../draw/page_state";
import { Timeline } from "../timeline/timeline";
import { FaultBox, Waiting, useAsked } from "./asking";
import { currentRoute, navigate } from "./navigation";
import type { ViewProps } from "./own_views";
import { Guard } from "./parts";

/** What was numbered in one state of the run means something else in another. */
function withoutNumbers(params: Record<string, string>): Record<string, string> {
  const { slice: _, on: __, folded_lanes: ___, folded_ranks: ____, ...rest } = params;
  return rest;
}

/** What the changes are worth, in the numbers of the page What if. */
function Gain(props: { state: RunState; changes: string }) {
  const { state, changes } = props;
  const { id, revision } = state;
  const asked = useAsked((signal) => askWhatIf({ id, revision }, changes, signal).then((text) => parseReport(text).answers.what_if?.scalars ?? {}), [state]);
  const number = (name: string) => asNumber(asked.value?.[name]?.value ?? null);
  const range = (low: number, high: number, text: (value: number) => string) => (text(low) === text(high) ? text(low) : `${text(low)} to ${text(high)}`);
  const [now, low, high] = [number("step_ns"), number("predicted_low_ns"), number("predicted_high_ns")];
  const [least, most] = [number("speedup_low"), number("speedup_high")];
  if (now === null || low === null || high === null) return null;
  return (
    <span data-gain="">
      A step (the mean): {formatNumber(now, "ns")} recorded, <b>{range(low, high, (value) => formatNumber(value, "ns"))}</b> predicted
      {least !== null && most !== null && `, ${range(least, most, (value) => value.toFixed(2))}× as fast`}.{" "}
    </span>
  );
}

export function TimelinePage(props: ViewProps) {
  const { run, route } = props;
  const { at, changes } = route.params;
  const params = useMemo(() => {
    const { at: _, changes: __, ...own } = route.params;
    return own;
  }, [route]);
  const { id, revision } = props.state;
  const state = useMemo(() => ({ id, revision, ...(changes ? { changes } : {}) }), [id, revision, changes]);
  const kept = { changes: changes ?? "" };
  const key = `${revision} ${changes ?? ""}`;
  const asked = useAsked((signal, share) => askTimeline(state, signal, share).then((index) => ({ state, index })), [state]);
  const shown = useRef(key);
  useEffect(() => {
    if (shown.current === key) return;
    shown.current = key;
    navigate({ view: "timeline", params: withoutNumbers(currentRoute().params) }, true);
  }, [key]);
  const index = asked.value?.state === state ? asked.value.index : null; // not that of the state before
  const moment = useMemo(() => (at === undefined || index === null ? null : momentParams(at, index)), [at, index]);
  useEffect(() => {
    if (moment !== null) navigate({ view: "timeline", params: { ...moment, ...kept, run: run.id } }, true);
  }, [moment]);
  const alone = formatRoute({ view: "timeline", params: withoutNumbers({ ...params, run: run.id }) });
  if (asked.error !== null) {
    return (
      <FaultBox error={asked.error}>
        {changes && (
          <p>
            <a href={alone}>The timeline without changes</a> · <a href={formatRoute({ view: "what_if", params: { run: run.id, changes } })}>mend the changes</a>
          </p>
        )}
      </FaultBox>
    );
  }
  if (index === null) return <Waiting what="The timeline is being made" share={asked.share ?? run.share ?? null} />;
  if (index.lanes.length === 0) {
    return (
      <p class="empty">
        Nothing in this run says when it ran. Record a timeline with “stepscope run -- CMD”, or open a trace of torch.profiler, nsys or rocprofv3.
      </p>
    );
  }
  if (moment !== null) return null; // its address is on the way
  return (
    <div class="timeline-page">
      {changes && (
        <p class="banner" role="status">
          Below each lane: predicted with {changes.split("\n").join(", ")}. <Gain state={state} changes={changes} />
          <a href={formatRoute({ view: "what_if", params: { run: run.id, changes } })}>What it is worth</a> ·{" "}
          <a href={alone}>the recording alone</a>
        </p>
      )}
      {at !== undefined && (
        <p class="banner" role="status">
          That moment is not on this timeline.
        </p>
      )}
      <Guard title="Timeline" key={key}>
        <PageState.Provider value={null}>
          <Timeline
            run={state}
            key={key}
            index={index}
            params={params}
            onChange={(params, replace) => currentRoute().view === "timeline" && navigate({ view: "timeline", params: { ...params, ...kept, run: run.id } }, replace)}
          />
        </PageState.Provider>
      </Guard>
    </div>
  );
}
