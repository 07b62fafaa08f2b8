// The canvases: their sizes, colors and renderer, and a frame drawn on all of them.
import type { Frame } from "./frame";
import { MINIMAP, drawMinimap } from "./minimap";
import type { Scene } from "./overlay";
import { drawNames, drawRuler, drawScene, rulerHeight } from "./overlay";
import type { Palette } from "./palette";
import { readPalette } from "./palette";
import type { Renderer } from "./renderer";
import { makeRenderer } from "./renderer";
import type { Tile } from "./tile";

export interface Surface {
  scroll: HTMLElement; // scrolls the lanes
  space: HTMLElement; // as high as all lanes
  plot: HTMLElement; // holds the canvases of the lanes
  overlay: HTMLCanvasElement;
  ruler: HTMLCanvasElement;
  minimap: HTMLCanvasElement;
}

const ratio = () => window.devicePixelRatio || 1;

export class Painter {
  width = 0;
  height = 0;
  palette: Palette = readPalette();
  private renderer: Renderer | null = null;
  private canvas: HTMLCanvasElement | null = null;
  private readonly watchers: (() => void)[] = [];

  /** `resized` and `recolored`: all must be drawn anew. */
  constructor(
    private readonly surface: Surface,
    private readonly resized: () => void,
    private readonly recolored: () => void,
  ) {
    this.makeCanvas(false);
    this.watch();
    this.measure();
  }

  close(): void {
    for (const unwatch of this.watchers) unwatch();
    this.renderer?.free();
    this.canvas?.remove();
  }

  get kind(): string {
    return this.renderer?.kind ?? "none";
  }

  /** Returns how many calls drew the rectangles. */
  paint(frame: Frame, scene: Scene, whole: { end: number; tiles: Tile[] }, nameOf: (id: number) => string | undefined): number {
    const { width, height, palette, surface } = this;
    const draws = this.renderer?.draw(frame, palette, width, height, ratio()) ?? 0;
    const context = this.context(surface.overlay, width, height);
    context.clearRect(0, 0, width, height);
    drawNames(context, frame, palette, width, nameOf);
    drawScene(context, scene);
    drawRuler(this.context(surface.ruler, width, rulerHeight(scene.steps.length)), scene);
    const { view, steps, marks } = scene;
    drawMinimap(this.context(surface.minimap, width, MINIMAP), { width, view, steps: steps[0] ?? null, palette, marks, found: scene.foundTimes, ...whole });
    return draws;
  }

  private measure(): void {
    this.width = this.surface.plot.clientWidth;
    this.height = this.surface.scroll.clientHeight;
    if (this.canvas !== null) size(this.canvas, this.width, this.height);
  }

  private context(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
    size(canvas, width, height);
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio(), 0, 0, ratio(), 0, 0);
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
      this.measure();
      this.recolored();
    });
  }

  private watch(): void {
    const sizes = new ResizeObserver(() => {
      this.measure();
      this.resized();
    });
    sizes.observe(this.surface.scroll);
    sizes.observe(this.surface.plot);
    const recolor = () => {
      this.palette = readPalette();
      this.recolored();
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
}

function size(canvas: HTMLCanvasElement, width: number, height: number): void {
  const [wide, high] = [Math.round(width * ratio()), Math.round(height * ratio())];
  if (canvas.width === wide && canvas.height === high) return;
  canvas.width = wide;
  canvas.height = high;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
