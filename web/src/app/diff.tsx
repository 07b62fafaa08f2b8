// What changed from another run to this one; which other stands in the page's address.
import { parseReport } from "../data/load";
import { askDiff } from "../data/server";
import { panelsFor } from "../panels";
import { difference } from "../panels/difference";
import { FaultBox, Waiting, useAsked } from "./asking";
import { navigate } from "./navigation";
import type { ViewProps } from "./own_views";
import { Section } from "./parts";

export function DiffPage(props: ViewProps) {
  const { run, runs, state, route } = props;
  const others = runs.filter((one) => one.id !== run.id && one.state !== "failed");
  const before = others.find((one) => one.id === route.params.before);
  const asked = useAsked(
    before ? (signal, share) => askDiff(state, before.id, signal, share).then((text) => ({ before: before.id, report: parseReport(text) })) : null,
    [state.id, state.revision, before?.id, Math.max(1, before?.revision ?? 0)],
  );
  const report = asked.value !== null && asked.value.before === before?.id ? asked.value.report : null;
  return (
    <main id="main" class="query">
      <h2>{difference.title}</h2>
      {others.length === 0 && (
        <p class="empty">
          This is the only run here. Open both: “stepscope view --each BEFORE AFTER”, or the folder that holds their folders.
        </p>
      )}
      {others.length > 0 && (
        <p class="query-tools">
          <label>
            From{" "}
            <select value={before?.id ?? ""} onChange={(event) => navigate({ view: "diff", params: { run: run.id, before: event.currentTarget.value } })}>
              <option value="">choose a run</option>
              {others.map((one) => (
                <option value={one.id}>{one.name}</option>
              ))}
            </select>
          </label>
          <span>
            to <bdi>{run.name}</bdi>
          </span>
          {before && (
            <button type="button" onClick={() => navigate({ view: "diff", params: { run: before.id, before: run.id } })}>
              the other way round
            </button>
          )}
        </p>
      )}
      {asked.error !== null && <FaultBox error={asked.error} />}
      {before && asked.error === null && report === null && <Waiting what="The runs are being compared" share={asked.share} />}
      {asked.error === null && report !== null && <div key={before?.id}>{panelsFor(report).map((panel) => <Section key={panel.id} panel={panel} report={report} untitled={panel === difference} />)}</div>}
    </main>
  );
}
