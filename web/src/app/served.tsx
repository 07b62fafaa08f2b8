// What “stepscope view” serves: the runs, and for a run its report cut into pages, its timeline and its queries.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { SCHEMA_VERSION, parseReport } from "../data/load";
import { formatRoute } from "../data/route";
import type { Route } from "../data/route";
import { askAnswers } from "../data/server";
import type { Run } from "../data/server";
import { PageLinks } from "../draw/page_links";
import { PageState } from "../draw/page_state";
import { momentText } from "../timeline/moment";
import { FaultBox, Waiting, useAsked, useRuns } from "./asking";
import { KeysDialog } from "./keys";
import { currentRoute, navigate, useRoute } from "./navigation";
import { OWN_VIEWS } from "./own_views";
import { labelOf, partsOf } from "./pages";
import type { ReportPart } from "./pages";
import { Section, ThemeButton } from "./parts";
import { RunsPage } from "./runs";

const PREDICTING = ["what_if", "timeline"];

export function Served() {
  const route = useRoute();
  const { runs, error } = useRuns();
  const [keys, setKeys] = useState(false);
  const only = runs?.length === 1 ? runs[0]! : undefined;
  const wanted = route.params.run ?? only?.id;
  const run = runs?.find((one) => one.id === wanted);
  useEffect(() => {
    if (only && route.params.run === undefined) navigate({ view: route.view || "health", params: { ...route.params, run: only.id } }, true);
  }, [only?.id, route]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key === "?" && !isTyping(event)) setKeys(true);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  return (
    <div class="served">
      <header>
        <h1>
          <a href="#/">stepscope</a>
        </h1>
        <p class="path" title={run?.path_shown}>
          {run && <bdi>{run.name}</bdi>}
        </p>
        <button type="button" class="theme" onClick={() => setKeys(true)}>
          keys: ?
        </button>
        <ThemeButton />
      </header>
      {error !== null && <FaultBox error={error} />}
      {runs === null && error === null && <Waiting what="Asking for the runs" share={null} />}
      {runs !== null && wanted === undefined && <RunsPage runs={runs} />}
      {runs !== null && wanted !== undefined && run === undefined && (
        <p class="failed" role="alert">
          The server has no run “{wanted}”. <a href="#/">All runs</a>
        </p>
      )}
      {run?.state === "failed" && (
        <div class="failed" role="alert">
          <bdi>{run.error?.message ?? "This run could not be opened"}</bdi> {run.error?.hint}
        </div>
      )}
      {run && run.state !== "failed" && <RunPages key={run.id} run={run} runs={runs ?? []} route={route} />}
      {keys && <KeysDialog onClose={() => setKeys(false)} />}
    </div>
  );
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function RunPages(props: { run: Run; runs: Run[]; route: Route }) {
  const { run, runs, route } = props;
  const view = route.view || "health";
  // While a run is opened for the first time its answers are waited for: what comes is of its first state.
  const revision = Math.max(1, run.revision ?? 0);
  const state = useMemo(() => ({ id: run.id, revision }), [run.id, revision]);
  const text = useAsked((signal, share) => askAnswers(state, signal, share), [state]);
  const parsed = useMemo(() => {
    try {
      return { report: text.value === null ? null : parseReport(text.value), error: null };
    } catch (error) {
      return { report: null, error };
    }
  }, [text.value]);
  const { report } = parsed;
  const parts = useMemo(() => (report === null ? [] : partsOf(report)), [report]);
  const links: Pick<ReportPart, "view" | "label" | "without">[] = [...parts, ...OWN_VIEWS];
  const paramsOf = useKeptChanges(run.id, view, route);
  usePageKeys(links.map((one) => one.view), view, paramsOf);
  usePanelLinks(parts, run.id);
  useEffect(() => {
    document.title = `${links.find((one) => one.view === view)?.label ?? labelOf(view) ?? "stepscope"} · ${run.name.slice(0, 100)} · stepscope`;
  });
  const part = parts.find((one) => one.view === view);
  const chosen = useMemo(() => pageState(route), [route]);
  const ranks = new Set(report?.input.files.map((file) => file.rank)).size;
  const pages = useMemo(() => pageLinks(run.id, ranks, parts), [run.id, ranks, parts]);
  const ownPages = useMemo(() => {
    const { answer, whatIf, moment } = pages;
    return { ofRun: { answer, whatIf, moment }, others: { answer, whatIf } };
  }, [pages]);
  // Kept, so that of a page only the tables are drawn anew when the state of one changes.
  const sections = useMemo(() => report !== null && part?.panels.map((panel) => <Section key={panel.id} panel={panel} report={report} />), [part, report]);
  const own = OWN_VIEWS.find((one) => one.view === view);
  const OwnPage = own?.page;
  return (
    <div class={own?.wholeWindow ? "served-body whole-window" : "served-body"}>
      <nav class="views" aria-label="views">
        <ul>
          {links.map((one) => (
            <li>
              <a
                href={formatRoute({ view: one.view, params: paramsOf(one.view) })}
                class={one.without ? "without" : undefined}
                title={one.without ? "nothing of this was recorded" : undefined}
                aria-current={one.view === view ? "page" : undefined}
              >
                {one.label}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      {OwnPage && (
        <PageState.Provider value={chosen}>
          <PageLinks.Provider value={own?.ofRun ? ownPages.ofRun : ownPages.others}>
            <OwnPage run={run} runs={runs} state={state} route={route} />
          </PageLinks.Provider>
        </PageState.Provider>
      )}
      {!own && (
        <main id="main" class="themes">
          {(text.error ?? parsed.error) !== null && <FaultBox error={text.error ?? parsed.error} />}
          {report === null && text.error === null && parsed.error === null && <Waiting what="The answers are being made" share={text.share ?? run.share ?? null} />}
          {report !== null && report.schema_version > SCHEMA_VERSION && (
            <p class="banner" role="alert">
              The server's answers have schema_version {report.schema_version}, the page knows {SCHEMA_VERSION}: what is new is left out.
            </p>
          )}
          {report !== null && part === undefined && <NoSuchPage view={view} pages={links} run={run.id} />}
          {report !== null && part !== undefined && (
            <PageLinks.Provider value={pages}>
              <PageState.Provider value={chosen}>{sections}</PageState.Provider>
            </PageLinks.Provider>
          )}
        </main>
      )}
    </div>
  );
}

function NoSuchPage(props: { view: string; pages: { view: string; label: string }[]; run: string }) {
  const label = labelOf(props.view);
  if (label !== undefined) return <p class="empty">This run has nothing to show on the page {label}; the page Files says what was not recorded.</p>;
  return (
    <p class="failed" role="alert">
      There is no page “<bdi>{props.view}</bdi>”. The pages of this run are{" "}
      {props.pages.map((one, i) => (
        <>
          {i > 0 && ", "}
          <a href={formatRoute({ view: one.view, params: { run: props.run } })}>{one.label}</a>
        </>
      ))}
      .
    </p>
  );
}

/** Where the menu leads: a page that shows predictions is come back to with the changes that it had. */
function useKeptChanges(run: string, view: string, route: Route): (view: string) => Record<string, string> {
  const kept = useRef<Record<string, string>>({});
  if (PREDICTING.includes(view)) kept.current[view] = route.params.changes ?? "";
  return (to) => ({ run, changes: kept.current[to] ?? "" });
}

/** What is chosen on a page stands in its address. */
function pageState(route: Route): PageState {
  return {
    params: route.params,
    change: (params, replace) => {
      const now = currentRoute();
      if (now.view === route.view) navigate({ view: now.view, params: { ...now.params, ...params } }, replace);
    },
  };
}

function pageLinks(run: string, ranks: number, parts: ReportPart[]): Required<PageLinks> {
  const panels = parts.flatMap((part) => part.panels);
  return {
    answer: (name) => {
      const panel = panels.find((one) => one.id === name);
      return panel === undefined ? null : { address: `#${name}`, label: panel.label };
    },
    whatIf: (changes) => formatRoute({ view: "what_if", params: { run, changes } }),
    asks: (sql) => formatRoute({ view: "query", params: { run, sql } }),
    moment: (moment) => (moment.rank === null && ranks > 1 ? null : formatRoute({ view: "timeline", params: { run, at: momentText(moment) } })),
  };
}

function usePageKeys(views: string[], view: string, paramsOf: (view: string) => Record<string, string>): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const at = views.indexOf(view);
      const to =
        event.key === "[" ? views[at - 1] : event.key === "]" ? views[at + 1] : event.key === "t" ? "timeline" : event.key === "q" ? "query" : undefined;
      if (to !== undefined && to !== view) navigate({ view: to, params: paramsOf(to) });
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}

/** Panels link to each other by "#ID", as they do in the report; here the other may be on another page. */
function usePanelLinks(parts: ReportPart[], run: string): void {
  useEffect(() => {
    const clicked = (event: MouseEvent) => {
      const link = (event.target as HTMLElement).closest?.("a[href^='#']");
      const id = link?.getAttribute("href")?.slice(1) ?? "";
      if (link === null || id.startsWith("/")) return;
      event.preventDefault();
      const part = parts.find((one) => one.panels.some((panel) => panel.id === id));
      if (part && part.view !== (currentRoute().view || "health")) navigate({ view: part.view, params: { run } });
      requestAnimationFrame(() => document.getElementById(id)?.scrollIntoView());
    };
    addEventListener("click", clicked);
    return () => removeEventListener("click", clicked);
  }, [parts, run]);
}
