// The page of the timeline: asks for its lanes, and draws it in the whole window.
import { useEffect, useMemo } from "preact/hooks";
import { askTimeline } from "../data/server";
import { momentParams } from "../timeline/moment";
import { Timeline } from "../timeline/timeline";
import { FaultBox, Waiting, useAsked } from "./asking";
import { currentRoute, navigate } from "./navigation";
import type { ViewProps } from "./own_views";
import { Guard } from "./parts";

export function TimelinePage(props: ViewProps) {
  const { run, state, route } = props;
  const index = useAsked((signal, share) => askTimeline(state, signal, share), [state.id, state.revision]);
  const { at, ...params } = route.params;
  const moment = useMemo(() => (at === undefined || index.value === null ? null : momentParams(at, index.value)), [at, index.value]);
  useEffect(() => {
    if (moment !== null) navigate({ view: "timeline", params: { ...moment, run: run.id } }, true);
  }, [moment]);
  if (index.error !== null) return <FaultBox error={index.error} />;
  if (index.value === null) return <Waiting what="The timeline is being made" share={index.share ?? run.share ?? null} />;
  if (index.value.lanes.length === 0) {
    return (
      <p class="empty">
        Nothing in this run says when it ran. Record a timeline with “stepscope run -- CMD”, or open a trace of torch.profiler, nsys or rocprofv3.
      </p>
    );
  }
  if (moment !== null) return null; // its address is on the way
  return (
    <Guard title="Timeline">
      {at !== undefined && (
        <p class="banner" role="status">
          That moment is not on this timeline.
        </p>
      )}
      <Timeline
        run={state}
        key={state.revision}
        index={index.value}
        params={params}
        onChange={(params, replace) => currentRoute().view === "timeline" && navigate({ view: "timeline", params: { ...params, run: run.id } }, replace)}
      />
    </Guard>
  );
}
