// The list of runs, where the server has several.
import type { Run } from "../data/server";
import { formatRoute } from "../data/route";
import { percent } from "../draw/format";

export function RunsPage(props: { runs: Run[] }) {
  return (
    <main id="main" class="runs">
      <h2>Runs</h2>
      {props.runs.length === 0 && <p class="empty">The server has no run. Give it a trace or a run folder: stepscope view PATH</p>}
      <ul>
        {props.runs.map((run) => (
          <li data-run={run.id}>
            {run.state === "failed" ? (
              <b>
                <bdi>{run.name}</bdi>
              </b>
            ) : (
              <a href={formatRoute({ view: "health", params: { run: run.id } })}>
                <bdi>{run.name}</bdi>
              </a>
            )}
            <span class="path">
              <bdi>{run.path_shown}</bdi>
            </span>
            <span class={`state ${run.state}`}>
              {run.state === "opening" ? `being opened${run.share != null ? ` · ${percent(run.share)}` : ""}` : run.live ? "running" : run.state}
            </span>
            {run.error && (
              <p class="failed">
                <bdi>{run.error.message}</bdi>
                {run.error.hint && <> {run.error.hint}</>}
              </p>
            )}
          </li>
        ))}
      </ul>
    </main>
  );
}
