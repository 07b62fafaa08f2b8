// The rectangles of a frame on a 2D canvas, for browsers without WebGL2. Drawn color by color: a change of the color
// costs more than a rectangle.
import type { Frame } from "./frame";
import { MOST } from "./frame";
import type { Palette } from "./palette";
import { shadeOf } from "./palette";
import type { Renderer } from "./renderer";

export function canvasRenderer(canvas: HTMLCanvasElement): Renderer | null {
  const context = canvas.getContext("2d");
  if (context === null) return null;
  const next = new Int32Array(MOST);
  const draw = (frame: Frame, palette: Palette, width: number, height: number, ratio: number): number => {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const first = new Int32Array(palette.css.length).fill(-1); // of each color a list through `next`
    for (let i = 0; i < frame.count; i++) {
      const shade = shadeOf(frame.kind[i]!, frame.fill[i]!);
      next[i] = first[shade]!;
      first[shade] = i;
    }
    let draws = 0;
    first.forEach((start, shade) => {
      if (start < 0) return;
      context.fillStyle = palette.css[shade]!;
      draws++;
      for (let i = start; i >= 0; i = next[i]!) {
        context.fillRect(frame.box[4 * i]!, frame.box[4 * i + 1]!, frame.box[4 * i + 2]!, frame.box[4 * i + 3]!);
      }
    });
    return draws;
  };
  return { kind: "canvas", draw, free: () => undefined };
}
