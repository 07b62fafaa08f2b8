// The timeline: all lanes of all ranks on one axis of time. The canvases belong to the viewer; here are the tools above
// them, the names beside and the pane beneath.
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import type { RunState, TimelineIndex } from "../data/server";
import { ServerError } from "../data/server";
import { CLASS_COUNT, className, classVariable } from "../draw/color";
import { useDraft } from "../draw/draft";
import { formatNumber, grouped } from "../draw/format";
import { Details } from "./details";
import { interact } from "./interaction";
import { LaneNames } from "./names";
import { PerfettoButton } from "./perfetto_button";
import type { Hover } from "./tip";
import { Tip } from "./tip";
import { Viewer } from "./viewer";

export function Timeline(props: {
  run: RunState;
  index: TimelineIndex;
  params: Record<string, string>;
  onChange: (params: Record<string, string>, replace: boolean) => void;
}) {
  const { index } = props;
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const [hover, setHover] = useState<Hover | null>(null);
  const [viewer, setViewer] = useState<Viewer | null>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const space = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const onChange = useRef(props.onChange);
  onChange.current = props.onChange;

  useEffect(() => {
    const surface = {
      scroll: scroll.current!,
      space: space.current!,
      plot: plot.current!,
      overlay: overlay.current!,
      ruler: ruler.current!,
      minimap: minimap.current!,
    };
    const made = new Viewer(props.run, index, surface, props.params, () => redraw(undefined), (params, replace) => onChange.current(params, replace));
    const stop = interact(
      made,
      surface,
      setHover,
      () => {
        search.current?.focus();
        search.current?.select();
      },
    );
    setViewer(made);
    return () => {
      stop();
      made.close();
    };
  }, [props.run, index]);
  // Before anything else can happen: a frame later the reader may be further, and would be taken back.
  useLayoutEffect(() => viewer?.apply(props.params), [viewer, props.params]);

  const pane = viewer !== null && (viewer.state.slice !== null || viewer.state.range !== null || viewer.state.find !== "");
  return (
    <main id="main" class="timeline">
      <Tools viewer={viewer} search={search} />
      <div class="tl-head">
        <p class="tl-corner">
          whole: {formatNumber(index.end, "ns")}
          {viewer && <StepsOf viewer={viewer} />}
        </p>
        <canvas ref={minimap} class="tl-minimap" aria-label="the whole recording, drag to move" />
        <p class="tl-corner">
          seen: <b>{viewer ? formatNumber(viewer.state.view.to - viewer.state.view.from, "ns") : ""}</b>
          {viewer?.steps()?.predicted && (
            <>
              <br />
              steps recorded
              <br />
              steps predicted
            </>
          )}
        </p>
        <canvas ref={ruler} class="tl-ruler" aria-label="time and steps, drag to choose a stretch" />
      </div>
      <div class="tl-scroll" ref={scroll} tabIndex={0} aria-label="lanes; keys: W S A D move, ? lists all">
        <div class="tl-space" ref={space}>
          <div class="tl-stick" style={{ height: viewer ? `${viewer.height}px` : "0" }}>
            {viewer && <LaneNames viewer={viewer} />}
            <div class="tl-plot" ref={plot}>
              <canvas ref={overlay} class="tl-overlay" role="img" aria-label={viewer?.describe() ?? "lanes"} />
              {viewer && hover && <Tip viewer={viewer} hover={hover} />}
            </div>
          </div>
        </div>
      </div>
      {pane && (
        <aside class="tl-pane" aria-label="details" aria-live="polite">
          <button type="button" class="tl-close" aria-label="close" title="close (Esc)" onClick={() => viewer.closePane()}>
            ×
          </button>
          <Details viewer={viewer} />
        </aside>
      )}
    </main>
  );
}

function StepsOf(props: { viewer: Viewer }) {
  const { viewer } = props;
  const steps = viewer.steps();
  if (steps === null) return null;
  const rank = viewer.index.ranks[steps.rank]?.rank;
  const count = steps.recorded.start.length;
  return (
    <small title="each up to the end of its work on the device, and none before the end of the one before, as on the page of steps">
      {" "}
      · {grouped(count)} {count === 1 ? "step" : "steps"}
      {rank != null && viewer.index.ranks.filter((one) => !one.predicted).length > 1 && ` of rank ${rank}`}
    </small>
  );
}

function Tools(props: { viewer: Viewer | null; search: { current: HTMLInputElement | null } }) {
  const { viewer } = props;
  const find = viewer?.state.find ?? "";
  const [text, setText] = useDraft(find);
  const found = viewer?.search.value ?? null;
  const fault = viewer?.asking.error ?? null;
  const path = viewer?.state.path ?? false;
  return (
    <div class="tl-tools">
      <form
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          if (text === find) viewer?.goFound(viewer.foundAt + 1);
          else viewer?.find(text);
        }}
      >
        <input
          ref={props.search}
          type="search"
          placeholder="search names ( / )"
          aria-label="search names"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            if (event.currentTarget.value === "") viewer?.find("");
          }}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
      </form>
      {found !== null && find !== "" && (
        <span class="tl-count" aria-live="polite">
          {viewer!.foundAt >= 0 ? `${grouped(viewer!.foundAt + 1)} of ` : ""}
          {grouped(found.total)} found
          <button type="button" aria-label="previous" title="previous (P)" onClick={() => viewer!.goFound(viewer!.foundAt - 1)}>
            ‹
          </button>
          <button type="button" aria-label="next" title="next (N)" onClick={() => viewer!.goFound(viewer!.foundAt + 1)}>
            ›
          </button>
        </span>
      )}
      <span class="tl-buttons">
        <button type="button" title="further (S)" aria-label="further" onClick={() => viewer?.zoom(1.4, viewer.width / 2)}>
          −
        </button>
        <button type="button" title="closer (W)" aria-label="closer" onClick={() => viewer?.zoom(1 / 1.4, viewer.width / 2)}>
          +
        </button>
        <button type="button" title="fit what is chosen, or everything (F)" onClick={() => viewer?.fit()}>
          Fit
        </button>
        {viewer && viewer.index.ranks.length > 1 && (
          <>
            <button type="button" onClick={() => viewer.foldAll(true)}>
              Fold
            </button>
            <button type="button" onClick={() => viewer.foldAll(false)}>
              Unfold
            </button>
          </>
        )}
        <button type="button" aria-pressed={path} title="what bounds each step, outlined on the lanes of its rank (C)" onClick={() => viewer?.showPath(!path)}>
          Critical path{path && viewer?.findingPath && " …"}
        </button>
        {viewer && <PerfettoButton viewer={viewer} />}
      </span>
      {fault !== null && (
        <span class="tl-fault" role="alert">
          {fault instanceof ServerError || fault instanceof Error ? fault.message : String(fault)}
        </span>
      )}
      <ul class="legend" aria-label="colors">
        {Array.from({ length: CLASS_COUNT }, (_, at) => (
          <li>
            <i style={{ background: `var(${classVariable(at)})` }} aria-hidden="true" />
            {className(at)}
          </li>
        ))}
      </ul>
    </div>
  );
}
