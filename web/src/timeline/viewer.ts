// Holds the state of the timeline, asks for what it needs, and draws a frame whenever something has changed. It owns the
// canvases; the lists and panes around them are Preact's, which is told by `changed`.
import { formatNumbers } from "../data/route";
import type { Found, Lane, RunState, SelectionRow, SliceDetails, SlicePlace, Steps, TimelineIndex } from "../data/server";
import { askSearch, askSelection, askSlice } from "../data/server";
import { Asking } from "./asking";
import { Frame, fillFrame, pieces } from "./frame";
import type { Band, Layout } from "./lanes";
import { ROW, bandsBetween, headings, layOut, predictedOf, recordedOf, rowTop } from "./lanes";
import type { Surface } from "./painter";
import { Painter } from "./painter";
import type { Outcome } from "./questions";
import { NOTHING, Questions } from "./questions";
import { sceneOf } from "./scene";
import type { Range, State } from "./state";
import { readState, writeState } from "./state";
import type { TileStore } from "./tiles";
import type { Stretch } from "./view";
import { clamped, fitted, panned, revealed, stretchLength, timeOf, zoomed } from "./view";

export interface FrameFacts {
  rects: number;
  draws: number;
  asked: number; // tiles, each of one lane, that this frame asked for
}

declare global {
  interface Window {
    stepscopeTimeline?: { frame: FrameFacts; renderer: string; total: () => number; waiting: () => number; frames: () => number; milliseconds: number };
  }
}

const SETTLED_MS = 250;

export class Viewer {
  state: State;
  layout: Layout;
  cursor: number | null = null;
  details: Outcome<SliceDetails> = NOTHING;
  statistics: Outcome<{ rows: SelectionRow[]; cut: boolean }> = NOTHING;
  search: Outcome<{ total: number; found: Found[] }> = NOTHING;
  foundAt = -1;
  findingPath = false; // it takes a while the first time
  trail: SlicePlace[] = []; // slices that were left by a link, so that one can go back
  readonly frame = new Frame();
  readonly asking: Asking;
  private readonly painter: Painter;
  private readonly questions: Questions;
  private pending = 0;
  private frames = 0;
  private settled: ReturnType<typeof setTimeout> | undefined;
  private readonly lanes: Map<number, Lane>;
  private chosenAt: number | null = null; // where in the lanes it was clicked, px

  constructor(
    readonly run: RunState,
    readonly index: TimelineIndex,
    private readonly surface: Surface,
    params: Record<string, string>,
    private readonly changed: () => void,
    private readonly moved: (params: Record<string, string>, replace: boolean) => void,
  ) {
    this.state = readState(params, index);
    this.layout = layOut(index, this.state.folded);
    this.lanes = new Map(index.lanes.map((lane) => [lane.id, lane]));
    this.asking = new Asking(run, index, () => this.draw());
    this.questions = new Questions(() => {
      this.draw();
      this.changed();
    });
    const resized = () => {
      this.keepChosenInSight();
      this.draw();
      this.changed();
    };
    this.painter = new Painter(surface, resized, () => this.draw());
    this.restore();
    this.askAll();
    this.draw();
  }

  close(): void {
    this.asking.close();
    clearTimeout(this.settled);
    cancelAnimationFrame(this.pending);
    this.questions.close();
    this.painter.close();
    delete window.stepscopeTimeline;
  }

  get store(): TileStore {
    return this.asking.store;
  }

  get width(): number {
    return this.painter.width;
  }

  get height(): number {
    return this.painter.height;
  }

  /** A state that came from outside: back, forward, an edited address. */
  apply(params: Record<string, string>): void {
    const text = JSON.stringify({ ...params, run: "" });
    if (text === JSON.stringify({ ...writeState(this.state, this.index), run: "" })) return;
    clearTimeout(this.settled);
    this.state = readState(params, this.index);
    this.restore();
    this.askAll();
    this.draw();
    this.changed();
  }

  // What is seen.

  show(view: Stretch): void {
    this.state.view = clamped(view, this.index.end);
    this.settle();
    this.draw();
  }

  zoom(factor: number, pixel = this.cursor ?? this.width / 2): void {
    this.show(zoomed(this.state.view, factor, timeOf(this.state.view, this.width, pixel), this.index.end));
  }

  pan(share: number): void {
    this.show(panned(this.state.view, share, this.index.end));
  }

  scrolled(): void {
    this.state.top = this.surface.scroll.scrollTop;
    this.settle();
    this.draw();
    this.changed();
  }

  fit(): void {
    const { slice, range } = this.state;
    const chosen = slice !== null ? this.details.value : null;
    if (chosen) this.show(fitted({ from: chosen.start, to: chosen.start + chosen.duration }, this.index.end));
    else if (range !== null) this.show(fitted(range, this.index.end));
    else this.show({ from: 0, to: this.index.end });
    this.commit();
  }

  fold(kind: "rank" | "lane", id: number): void {
    const set = kind === "rank" ? this.state.folded.ranks : this.state.folded.lanes;
    if (!set.delete(id)) set.add(id);
    this.relayout();
    this.commit();
    this.draw();
    this.changed();
  }

  foldAll(fold: boolean): void {
    this.state.folded.ranks = new Set(fold ? headings(this.index) : []);
    this.relayout();
    this.commit();
    this.draw();
    this.changed();
  }

  showPath(show: boolean): void {
    this.state.path = show;
    this.commit();
    this.draw();
    this.changed();
  }

  // What is chosen.

  /** `y`: where on the screen, so that the pane that opens below does not cover it. */
  chooseAt(of: SlicePlace, y: number): void {
    this.chosenAt = this.state.top + y;
    this.choose(of);
  }

  private keepChosenInSight(): void {
    if (this.chosenAt === null || this.state.slice === null || this.height === 0) return;
    // The pane grows once more when the answer is there.
    const below = this.chosenAt + 2 * ROW - (this.state.top + this.height);
    if (below > 0) this.surface.scroll.scrollTop += below;
  }

  choose(of: SlicePlace | null, reveal?: { lane: number; row?: number; start: number; duration: number }): void {
    this.state.slice = of;
    if (of !== null) this.state.range = null;
    if (reveal) this.reveal(reveal);
    this.askChosen();
    this.commit();
    this.draw();
    this.changed();
  }

  selectRange(range: Range | null, done: boolean): void {
    this.state.range = range;
    if (range !== null) this.state.slice = null;
    this.draw();
    if (!done) return;
    this.askChosen();
    this.commit();
    this.changed();
  }

  clear(): void {
    this.trail = [];
    this.state.range = null;
    this.choose(null);
  }

  /** What the pane shows is let go: the chosen first, then the search. */
  closePane(): void {
    if (this.state.slice === null && this.state.range === null) this.find("");
    else this.clear();
  }

  /** To the next slice along the links; `back`: to where one came from. */
  follow(back: boolean): void {
    const here = this.state.slice;
    if (back) {
      const before = this.trail.pop();
      if (before) this.choose(before);
      this.askChosen(true);
      return;
    }
    const links = this.details.value?.links ?? [];
    const last = this.trail[this.trail.length - 1];
    const next = links.find((link) => !(last && link.rank === last.rank && link.slice === last.slice)) ?? links[0];
    if (here === null || next === undefined) return;
    this.trail.push(here);
    this.choose({ rank: next.rank, slice: next.slice }, next);
  }

  mark(): void {
    const chosen = this.state.slice !== null ? this.details.value : null;
    const time = chosen?.start ?? this.state.range?.from ?? (this.cursor === null ? null : timeOf(this.state.view, this.width, this.cursor));
    if (time === null) return;
    const near = (stretchLength(this.state.view) / Math.max(1, this.width)) * 4;
    const without = this.state.marks.filter((mark) => Math.abs(mark - time) > near);
    this.state.marks = without.length < this.state.marks.length ? without : [...this.state.marks, Math.round(time)].sort((a, b) => a - b);
    this.commit();
    this.draw();
    this.changed();
  }

  find(text: string): void {
    if (text === this.state.find) return;
    this.state.find = text;
    this.foundAt = -1;
    this.askSearched();
    this.commit();
    this.changed();
  }

  goFound(at: number): void {
    const found = this.search.value?.found ?? [];
    if (found.length === 0) return;
    this.foundAt = (at + found.length) % found.length;
    const one = found[this.foundAt]!;
    this.trail = [];
    this.choose({ rank: one.rank, slice: one.slice }, one);
  }

  laneOf(id: number): Lane | undefined {
    return this.lanes.get(id);
  }

  bandsInView(): Band[] {
    return bandsBetween(this.layout, this.state.top, this.state.top + this.height);
  }

  bandAt(y: number): Band | undefined {
    const at = y + this.state.top;
    return this.bandsInView().find((band) => at >= band.top && at < band.top + band.height);
  }

  /** The lanes between two heights of the plot, each whole; a heading stands for all lanes of its rank. */
  lanesBetween(y: number, toY: number): number[] {
    const [from, to] = [Math.min(y, toY) + this.state.top, Math.max(y, toY) + this.state.top];
    const ids = new Set<number>();
    for (const band of bandsBetween(this.layout, from, to + 1)) {
      if (band.kind === "lane") ids.add(band.lane!.id);
      else if (band.folded) for (const lane of this.index.lanes) if (lane.rank === band.rank) ids.add(lane.id);
    }
    return [...ids];
  }

  /** The steps of the rank that is looked at: of the chosen slice's, else of the first that is seen and has some. */
  steps(): { rank: number; recorded: Steps; predicted: Steps | null } | null {
    const { ranks } = this.index;
    const has = (rank: number | undefined) => rank !== undefined && (ranks[rank]?.steps.start.length ?? 0) > 0;
    const seen = this.bandsInView().map((band) => band.rank);
    const found = [this.state.slice?.rank, ...seen, ...ranks.map((_, at) => at)].find(has);
    if (found === undefined) return null;
    const rank = recordedOf(this.index, found);
    const predicted = predictedOf(this.index, rank);
    return { rank, recorded: ranks[rank]!.steps, predicted: predicted === undefined ? null : ranks[predicted]!.steps };
  }

  /** The rank that is looked at: of the chosen slice, else the first that is seen. */
  rankInView(): number {
    return this.state.slice?.rank ?? this.bandsInView()[0]?.rank ?? 0;
  }

  // Drawing.

  draw(): void {
    if (this.pending === 0) this.pending = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    this.pending = 0;
    const began = performance.now();
    const { view, top } = this.state;
    const { width, height, frame } = this;
    if (width === 0) return;
    const bands = this.bandsInView();
    const steps = this.steps();
    const rank = steps?.rank ?? 0;
    const asked = this.asking.askFor({ view, width, height, top, layout: this.layout, bands, rank, path: this.state.path });
    const found = pieces(bands, this.asking.rangeOf(view, width), (level, index, lane) => this.store.get(level, index, lane));
    fillFrame(frame, found.pieces, { view, width, top, height });
    const scene = sceneOf({
      ...{ state: this.state, layout: this.layout, lanes: this.lanes, bands, frame, width, height, cursor: this.cursor },
      palette: this.painter.palette,
      steps: steps === null ? [] : [steps.recorded, ...(steps.predicted ? [steps.predicted] : [])],
      ranks: this.index.ranks,
      layers: this.asking.layers,
      details: this.state.slice !== null ? this.details.value : null,
      found: this.state.find === "" ? [] : (this.search.value?.found ?? []),
    });
    const draws = this.painter.paint(frame, scene, { end: this.index.end, tiles: this.asking.tilesOfWhole(rank, width) }, (id) => this.store.nameOf(id));
    this.frames++;
    window.stepscopeTimeline = {
      frame: { rects: frame.count, draws, asked },
      renderer: this.painter.kind,
      total: () => this.store.total,
      waiting: () => this.store.waiting,
      frames: () => this.frames,
      milliseconds: performance.now() - began, // of the script; what the graphics device then does is not in it
    };
    const busy = found.missing ? "true" : "false";
    const finding = this.asking.layers.path.waiting;
    if (this.surface.plot.dataset.busy !== busy || this.findingPath !== finding) {
      this.surface.plot.dataset.busy = busy;
      this.findingPath = finding;
      this.changed();
    }
  }

  private restore(): void {
    const { top } = this.state;
    this.relayout();
    this.surface.scroll.scrollTop = top;
    this.state.top = this.surface.scroll.scrollTop; // there may be less to scroll here
  }

  private relayout(): void {
    this.layout = layOut(this.index, this.state.folded);
    this.surface.space.style.height = `${this.layout.height}px`;
    this.state.top = this.surface.scroll.scrollTop;
  }

  private reveal(of: { lane: number; row?: number; start: number; duration: number }): void {
    const lane = this.lanes.get(of.lane);
    if (lane === undefined) return;
    const { folded, view } = this.state;
    const deep = (of.row ?? 0) > 0;
    if (folded.ranks.delete(lane.rank) || (deep && folded.lanes.delete(lane.id))) this.relayout();
    const band = this.layout.ofLane.get(lane.id);
    if (band !== undefined) {
      const y = rowTop(band, of.row ?? 0);
      if (y < this.state.top || y + ROW > this.state.top + this.height) {
        this.surface.scroll.scrollTop = y - this.height / 2;
        this.state.top = this.surface.scroll.scrollTop;
      }
    }
    this.state.view = revealed(view, this.width, of, this.index.end);
  }

  // Address.

  private settle(): void {
    clearTimeout(this.settled);
    this.settled = setTimeout(() => this.moved(writeState(this.state, this.index), true), SETTLED_MS);
  }

  /** A state of its own in the history. */
  private commit(): void {
    clearTimeout(this.settled);
    this.moved(writeState(this.state, this.index), false);
  }

  // Questions.

  private askAll(): void {
    this.askChosen();
    this.askSearched();
  }

  private askChosen(revealIt = false): void {
    const { slice, range } = this.state;
    this.details = NOTHING;
    this.questions.ask("slice", slice && ((signal) => askSlice(this.run, slice, signal)), (outcome) => {
      this.details = outcome;
      if (revealIt && outcome.value) {
        this.reveal(outcome.value);
        this.commit();
      }
    });
    const of = range && { from: Math.floor(range.from), to: Math.ceil(range.to), lanes: range.lanes };
    this.statistics = NOTHING;
    this.questions.ask("selection", of && ((signal) => askSelection(this.run, of, signal)), (outcome) => (this.statistics = outcome));
  }

  private askSearched(): void {
    const text = this.state.find;
    this.questions.ask("search", text === "" ? null : (signal) => askSearch(this.run, text, signal), (outcome) => (this.search = outcome));
  }

  /** For people who cannot see the canvas: what is seen, in words. */
  describe(): string {
    const bands = this.bandsInView();
    return `${this.frame.count} slices of lanes ${formatNumbers(bands.flatMap((band) => (band.lane ? [band.lane.id] : [])))}`;
  }
}
