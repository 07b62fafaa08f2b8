// Draws phases, counters and critical paths on the canvas above the rectangles.
import type { CounterPoints, Lane } from "../data/server";
import { ROW } from "./lanes";
import type { PhaseStrip } from "./layers";
import type { Palette } from "./palette";
import { fitName } from "./text";
import type { Stretch } from "./view";
import { indexAt, pixelOf } from "./view";

export interface Screen {
  view: Stretch;
  width: number;
  palette: Palette;
}

/** The heading of a rank with its phases; `thin` where slices are drawn in it. */
export interface StripPlace {
  y: number;
  height: number;
  thin: boolean;
  strip: PhaseStrip;
}

export interface CounterPlace {
  y: number;
  height: number;
  lane: Lane;
  points: CounterPoints;
}

export interface PathPlace {
  boxes: { x: number; right: number; y: number; gap: boolean }[];
  lines: { x: number; y: number; toX: number; toY: number }[];
}

export function drawStrips(context: CanvasRenderingContext2D, strips: StripPlace[], { view, width, palette }: Screen): void {
  const measure = (text: string) => context.measureText(text).width;
  for (const { y, height, thin, strip } of strips) {
    for (let i = 0; i < strip.start.length; i++) {
      const [from, to] = [pixelOf(view, width, strip.start[i]!), pixelOf(view, width, strip.end[i]!)];
      if (to < 0 || from > width) continue;
      const name = strip.names[strip.phase[i]!] ?? "";
      const wide = Math.max(0.8, to - from);
      context.fillStyle = palette.colorOf(name);
      if (thin) {
        context.fillRect(from, y + height - 3, wide, 3);
        continue;
      }
      context.globalAlpha = 0.28;
      context.fillRect(from, y + 3, wide, height - 6);
      context.globalAlpha = 1;
      context.fillRect(from, y + height - 6, wide, 3);
      const left = Math.max(0, from);
      const text = wide < 30 ? "" : fitName(name, Math.min(width, to) - left - 8, measure);
      context.fillStyle = palette.ink;
      if (text !== "") context.fillText(text, left + 4, y + height / 2 - 1);
    }
  }
}

/**
 * A value holds until the next: steps, filled to zero. Rectangles and no paths: without a graphics device a path of a
 * thousand edges costs many times as much.
 */
export function drawCounters(context: CanvasRenderingContext2D, counters: CounterPlace[], { view, width, palette }: Screen): void {
  context.fillStyle = palette.counter;
  for (const { y, height, lane, points } of counters) {
    const { floor, top } = axisOf(lane);
    const yOf = (value: number) => Math.round(y + height - 1 - ((value - floor) / (top - floor)) * (height - 3));
    const base = yOf(0);
    const each = (draw: (from: number, to: number, low: number, high: number) => void) => {
      for (let i = indexAt(points.start, view.from); i < points.start.length && points.start[i]! < view.to; i++) {
        const [low, high] = [points.low[i]!, points.high[i]!];
        if (low === null || high === null) continue;
        const next = points.start[i + 1] ?? points.end;
        // On whole pixels, or the seams would be seen.
        const from = Math.max(-2, Math.round(pixelOf(view, width, points.start[i]!)));
        const to = next === undefined ? width + 2 : Math.min(width + 2, Math.round(pixelOf(view, width, next)));
        draw(from, to, yOf(low), yOf(high));
      }
    };
    context.globalAlpha = 0.22;
    each((from, to, low, high) => context.fillRect(from, Math.min(high, base), to - from, Math.max(low, base) - Math.min(high, base)));
    context.globalAlpha = 1;
    // The line, and what it jumps over; of several values all from the lowest to the highest.
    let before: number | null = null;
    let end = 0;
    each((from, to, low, high) => {
      context.fillRect(from, high, Math.max(1, to - from), Math.max(1, low - high));
      if (before !== null && end === from && Math.abs(before - high) > 1) context.fillRect(from, Math.min(before, high), 1, Math.abs(before - high) + 1);
      [before, end] = [low, to];
    });
  }
  context.globalAlpha = 1;
}

/** From zero on, so that heights compare. */
export function axisOf(lane: Lane): { floor: number; top: number } {
  const [low, high] = [lane.low ?? 0, lane.high ?? 0];
  const floor = Math.min(0, low);
  const top = Math.max(0, high);
  return { floor, top: top > floor ? top : floor + 1 };
}

export function drawPath(context: CanvasRenderingContext2D, path: PathPlace, { palette }: Screen): void {
  context.strokeStyle = context.fillStyle = palette.path;
  context.lineWidth = 2;
  const [bars, boxes, lines] = [new Path2D(), new Path2D(), new Path2D()];
  for (const { x, right, y, gap } of path.boxes) {
    const wide = Math.max(1.5, right - x);
    if (gap) bars.rect(x, y + ROW / 2 - 1, wide, 2);
    else bars.rect(x, y + ROW - 3, wide, 3);
    if (!gap && wide > 5) boxes.rect(x + 0.5, y, wide - 1, ROW - 1);
  }
  for (const { x, y, toX, toY } of path.lines) {
    lines.moveTo(x, y);
    lines.lineTo(toX, toY);
  }
  context.fill(bars);
  context.stroke(boxes);
  context.lineWidth = 1.5;
  context.stroke(lines);
}
