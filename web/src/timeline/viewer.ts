// Holds the state of the timeline, asks for what it needs, and draws a frame whenever something has changed. It owns the
// canvases; the lists and panes around them are Preact's, which is told by `changed`.
import { formatNumbers } from "../data/route";
import type { Found, Lane, SelectionRow, SliceDetails, SlicePlace, Steps, TimelineIndex } from "../data/server";
import { askSearch, askSelection, askSlice, askTiles, isAbort } from "../data/server";
import type { Screen } from "./frame";
import { Frame, fillFrame, pieces } from "./frame";
import type { Band, Layout } from "./lanes";
import { ROW, bandOf, bandsBetween, layOut, rowTop } from "./lanes";
import { MINIMAP, drawMinimap } from "./minimap";
import type { Place, Scene } from "./overlay";
import { RULER, drawNames, drawRuler, drawScene } from "./overlay";
import type { Palette } from "./palette";
import { readPalette } from "./palette";
import type { Renderer } from "./renderer";
import { makeRenderer } from "./renderer";
import type { Range, State } from "./state";
import { readState, writeState } from "./state";
import { TileStore } from "./tiles";
import type { Stretch } from "./view";
import { clamped, fitted, levelFor, panned, pixelOf, stretchLength, tilesIn, timeOf, withMargin, zoomed } from "./view";

export interface Surface {
  scroll: HTMLElement; // scrolls the lanes
  space: HTMLElement; // as high as all lanes
  plot: HTMLElement; // holds the canvases of the lanes
  overlay: HTMLCanvasElement;
  ruler: HTMLCanvasElement;
  minimap: HTMLCanvasElement;
}

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

export interface Outcome<T> {
  value: T | null;
  error: unknown;
}

const NOTHING: Outcome<never> = { value: null, error: null };
const SETTLED_MS = 250;

export class Viewer {
  state: State;
  layout: Layout;
  width = 0;
  height = 0;
  cursor: number | null = null;
  details: Outcome<SliceDetails> = NOTHING;
  statistics: Outcome<{ rows: SelectionRow[]; cut: boolean }> = NOTHING;
  search: Outcome<{ total: number; found: Found[] }> = NOTHING;
  foundAt = -1;
  trail: SlicePlace[] = []; // slices that were left by a link, so that one can go back
  readonly frame = new Frame();
  readonly store: TileStore;
  private palette: Palette;
  private renderer: Renderer | null = null;
  private canvas: HTMLCanvasElement | null = null;
  private asking = new Map<string, AbortController>();
  private pending = 0;
  private frames = 0;
  private settled: ReturnType<typeof setTimeout> | undefined;
  private readonly lanes: Map<number, Lane>;
  private readonly watchers: (() => void)[] = [];

  constructor(
    readonly run: string,
    readonly index: TimelineIndex,
    private readonly surface: Surface,
    params: Record<string, string>,
    private readonly changed: () => void,
    private readonly moved: (params: Record<string, string>, replace: boolean) => void,
  ) {
    this.state = readState(params, index);
    this.layout = layOut(index, this.state.folded);
    this.lanes = new Map(index.lanes.map((lane) => [lane.id, lane]));
    this.store = new TileStore((of, signal) => askTiles(run, of, signal), () => this.draw());
    this.palette = readPalette();
    this.makeCanvas(false);
    this.watch();
    this.resize();
    this.restore();
    this.askAll();
    this.draw();
  }

  close(): void {
    this.store.close();
    clearTimeout(this.settled);
    cancelAnimationFrame(this.pending);
    for (const abort of this.asking.values()) abort.abort();
    for (const unwatch of this.watchers) unwatch();
    this.renderer?.free();
    this.canvas?.remove();
    delete window.stepscopeTimeline;
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
    this.state.folded.ranks = new Set(fold ? this.index.ranks.map((_, at) => at) : []);
    this.relayout();
    this.commit();
    this.draw();
    this.changed();
  }

  // What is chosen.

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
  steps(): { rank: number; steps: Steps } | null {
    const has = (rank: number | undefined) => rank !== undefined && (this.index.ranks[rank]?.steps.start.length ?? 0) > 0;
    const seen = this.bandsInView().map((band) => band.rank);
    const rank = [this.state.slice?.rank, ...seen, ...this.index.ranks.map((_, at) => at)].find(has);
    return rank === undefined ? null : { rank, steps: this.index.ranks[rank]!.steps };
  }

  // Drawing.

  draw(): void {
    if (this.pending === 0) this.pending = requestAnimationFrame(() => this.paint());
  }

  private paint(): void {
    this.pending = 0;
    const began = performance.now();
    const { view, top } = this.state;
    const { width, height } = this;
    if (width === 0 || this.renderer === null) return;
    const bands = this.bandsInView();
    const level = levelFor(view, width);
    const range = tilesIn(view, level, this.index.end);
    const asked = this.askForTiles(bands, range);
    const screen: Screen = { view, width, top, height };
    const found = pieces(bands, range, (at, index, lane) => this.store.get(at, index, lane));
    fillFrame(this.frame, found.pieces, screen);
    const ratio = window.devicePixelRatio || 1;
    const draws = this.renderer.draw(this.frame, this.palette, width, height, ratio);
    const scene = this.scene(bands);
    const context = this.context(this.surface.overlay, width, height);
    context.clearRect(0, 0, width, height);
    drawNames(context, this.frame, this.palette, width, (id) => this.store.nameOf(id));
    drawScene(context, scene);
    drawRuler(this.context(this.surface.ruler, width, RULER), scene);
    this.paintMinimap(scene);
    this.frames++;
    window.stepscopeTimeline = {
      frame: { rects: this.frame.count, draws, asked },
      renderer: this.renderer.kind,
      total: () => this.store.total,
      waiting: () => this.store.waiting,
      frames: () => this.frames,
      milliseconds: performance.now() - began, // of the script; what the graphics device then does is not in it
    };
    const busy = found.missing ? "true" : "false";
    if (this.surface.plot.dataset.busy !== busy) {
      this.surface.plot.dataset.busy = busy;
      this.changed();
    }
  }

  private minimapLane(): Lane | null {
    const rank = this.steps()?.rank ?? 0;
    const own = this.index.lanes.filter((lane) => lane.rank === rank);
    const streams = own.filter((lane) => lane.kind === "stream");
    return (streams.length > 0 ? streams : own).reduce<Lane | null>((most, lane) => (most === null || lane.slices > most.slices ? lane : most), null);
  }

  private minimapTiles() {
    const whole = { from: 0, to: Math.max(1, this.index.end) };
    return tilesIn(whole, levelFor(whole, this.width), this.index.end);
  }

  private askForTiles(bands: Band[], range: { level: number; first: number; last: number }): number {
    const ids = (of: Band[]) => of.flatMap((band) => (band.lane === null ? [] : [band.lane.id]));
    const around = bandsBetween(this.layout, this.state.top - this.height / 4, this.state.top + this.height * 1.25);
    const lane = this.minimapLane();
    return this.store.want([
      { range, lanes: ids(bands) },
      { range: this.minimapTiles(), lanes: lane === null ? [] : [lane.id] },
      { range: withMargin(range, this.index.end), lanes: ids(bands) },
      { range, lanes: ids(around) },
    ]);
  }

  private paintMinimap(scene: Scene): void {
    const lane = this.minimapLane();
    const range = this.minimapTiles();
    const tiles = [];
    for (let at = range.first; lane !== null && at <= range.last; at++) {
      const tile = this.store.get(range.level, at, lane.id);
      if (tile !== undefined) tiles.push(tile);
    }
    drawMinimap(this.context(this.surface.minimap, this.width, MINIMAP), {
      width: this.width,
      end: this.index.end,
      view: scene.view,
      steps: scene.steps,
      tiles,
      palette: this.palette,
      found: scene.foundTimes,
      marks: scene.marks,
    });
  }

  private scene(bands: Band[]): Scene {
    const details = this.state.slice !== null ? this.details.value : null;
    const chosen = details === null ? null : this.place(details.lane, details.row, details.start, details.duration);
    const links = details?.links.slice(0, 200).flatMap((link) => {
      const place = this.place(link.lane, link.row ?? this.rowOf(link), link.start, link.duration);
      return place === null ? [] : [{ link, place }];
    });
    const found = this.state.find === "" ? [] : (this.search.value?.found ?? []);
    return {
      view: this.state.view,
      width: this.width,
      height: this.height,
      palette: this.palette,
      steps: this.steps()?.steps ?? null,
      range: this.state.range,
      rangeBands: bands.filter((band) => this.isInRange(band)).map((band) => ({ y: band.top - this.state.top - 2, height: band.height + 4 })),
      marks: this.state.marks,
      cursor: this.cursor,
      chosen,
      links: links ?? [],
      found: found.flatMap((one) => {
        const place = this.place(one.lane, one.row ?? 0, one.start, one.duration);
        return place === null || place.right < 0 || place.x > this.width ? [] : [place];
      }),
      foundTimes: found,
      separators: bands.map((band) => ({ y: band.top - this.state.top - (band.kind === "rank" ? 1 : 3), strong: band.kind === "rank" })),
    };
  }

  private isInRange(band: Band): boolean {
    const lanes = this.state.range?.lanes ?? [];
    if (lanes.length === 0) return true;
    return band.lane !== null && lanes.includes(band.lane.id);
  }

  private place(lane: number, row: number, start: number, duration: number): Place | null {
    const of = this.lanes.get(lane);
    const band = of && bandOf(this.layout, of);
    if (band === undefined) return null;
    const { view } = this.state;
    return {
      x: pixelOf(view, this.width, start),
      right: pixelOf(view, this.width, start + duration),
      y: rowTop(band, Math.min(row, band.rows - 1)) - this.state.top,
    };
  }

  /** Links do not tell the row; a slice that is on the screen does. */
  private rowOf(of: { lane: number; slice: number }): number {
    for (let i = 0; i < this.frame.count; i++) {
      const tile = this.frame.tile[i]!;
      if (tile.lane === of.lane && tile.slice[this.frame.at[i]!] === of.slice) return tile.row[this.frame.at[i]!]!;
    }
    return 0;
  }

  private context(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  private makeCanvas(plain: boolean): void {
    this.renderer?.free();
    this.canvas?.remove();
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.surface.plot.prepend(this.canvas);
    this.renderer = makeRenderer(this.canvas, plain, () => {
      this.makeCanvas(true);
      this.resize();
    });
  }

  resize(): void {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.surface.plot.clientWidth;
    this.height = this.surface.scroll.clientHeight;
    if (this.canvas) {
      this.canvas.width = Math.round(this.width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.height}px`;
    }
    this.draw();
    this.changed();
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

  private watch(): void {
    const { scroll, plot } = this.surface;
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(scroll);
    sizes.observe(plot);
    const recolor = () => {
      this.palette = readPalette();
      this.draw();
    };
    const theme = new MutationObserver(recolor);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", recolor);
    this.watchers.push(
      () => sizes.disconnect(),
      () => theme.disconnect(),
      () => dark.removeEventListener("change", recolor),
    );
  }

  private reveal(of: { lane: number; row?: number; start: number; duration: number }): void {
    const lane = this.lanes.get(of.lane);
    if (lane === undefined) return;
    const { folded, view } = this.state;
    const deep = (of.row ?? 0) > 0;
    if (folded.ranks.delete(lane.rank) || (deep && folded.lanes.delete(lane.id))) this.relayout();
    const band = bandOf(this.layout, lane);
    if (band !== undefined) {
      const y = rowTop(band, of.row ?? 0);
      if (y < this.state.top || y + ROW > this.state.top + this.height) {
        this.surface.scroll.scrollTop = y - this.height / 2;
        this.state.top = this.surface.scroll.scrollTop;
      }
    }
    const length = stretchLength(view);
    const pixels = (of.duration / length) * this.width;
    const middle = of.start + of.duration / 2;
    const wanted = pixels < 3 ? of.duration * 100 : pixels > this.width ? of.duration * 1.2 : length;
    const seen = of.start >= view.from && of.start + of.duration <= view.to;
    if (wanted === length && seen) return;
    this.state.view = clamped({ from: middle - wanted / 2, to: middle + wanted / 2 }, this.index.end);
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

  private askOnce<T>(name: string, ask: ((signal: AbortSignal) => Promise<T>) | null, set: (outcome: Outcome<T>) => void): void {
    this.asking.get(name)?.abort();
    if (ask === null) return set(NOTHING);
    const abort = new AbortController();
    this.asking.set(name, abort);
    const done = (outcome: Outcome<T>) => {
      if (abort.signal.aborted) return;
      set(outcome);
      this.draw();
      this.changed();
    };
    ask(abort.signal).then(
      (value) => done({ value, error: null }),
      (error) => isAbort(error) || done({ value: null, error }),
    );
  }

  private askChosen(revealIt = false): void {
    const { slice, range } = this.state;
    this.details = NOTHING;
    this.askOnce("slice", slice && ((signal) => askSlice(this.run, slice, signal)), (outcome) => {
      this.details = outcome;
      if (revealIt && outcome.value) {
        this.reveal(outcome.value);
        this.commit();
      }
    });
    const lanes = range === null || range.lanes.length > 0 ? (range?.lanes ?? []) : this.index.lanes.map((lane) => lane.id);
    const of = range && { from: Math.floor(range.from), to: Math.ceil(range.to), lanes };
    this.statistics = NOTHING;
    this.askOnce("selection", of && ((signal) => askSelection(this.run, of, signal)), (outcome) => (this.statistics = outcome));
  }

  private askSearched(): void {
    const text = this.state.find;
    this.askOnce("search", text === "" ? null : (signal) => askSearch(this.run, text, signal), (outcome) => (this.search = outcome));
  }

  /** For people who cannot see the canvas: what is seen, in words. */
  describe(): string {
    const bands = this.bandsInView();
    return `${this.frame.count} slices of lanes ${formatNumbers(bands.flatMap((band) => (band.lane ? [band.lane.id] : [])))}`;
  }
}
