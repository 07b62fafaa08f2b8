// What draws the rectangles of a frame: WebGL2 where the browser has it, else a 2D canvas.
import { canvasRenderer } from "./canvas";
import type { Frame } from "./frame";
import type { Palette } from "./palette";
import { webglRenderer } from "./webgl";

export interface Renderer {
  kind: "webgl2" | "canvas";
  /** Returns how many calls drew it. */
  draw: (frame: Frame, palette: Palette, width: number, height: number, ratio: number) => number;
  free: () => void;
}

/** `lost`: the graphics driver took the context away; the caller makes a canvas anew, which then draws in 2D. */
export function makeRenderer(canvas: HTMLCanvasElement, plain: boolean, lost: () => void): Renderer | null {
  return (plain ? null : webglRenderer(canvas, lost)) ?? canvasRenderer(canvas);
}
