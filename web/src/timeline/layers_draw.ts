// Draws phases, counters and critical paths on the canvas above the rectangles.
import type { CounterPoints, Lane } from "../data/server";
import { ROW } from "./lanes";
import type { PhaseStrip } from "./layers";
import type { Palette } from "./palette";
import { fitName } from "./text";
import type { Stretch } from "./view";
import { pixelOf } from "./view";

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

/** A value holds until the next: steps, filled down to zero, or to the lowest where that lies below it. */
export function drawCounters(context: CanvasRenderingContext2D, counters: CounterPlace[], { view, width, palette }: Screen): void {
  for (const { y, height, lane, points } of counters) {
    const { floor, top } = axisOf(lane);
    const yOf = (value: number) => y + height - 1 - ((value - floor) / (top - floor)) * (height - 3);
    const base = yOf(floor);
    const [area, between, line] = [new Path2D(), new Path2D(), new Path2D()];
    let before: number | null = null; // where the line is
    for (let i = 0; i < points.start.length; i++) {
      const [low, high] = [points.low[i]!, points.high[i]!];
      const from = Math.max(-2, pixelOf(view, width, points.start[i]!));
      const next = points.start[i + 1];
      const to = Math.min(width + 2, next === undefined ? width + 2 : pixelOf(view, width, next));
      if (low === null || high === null) before = null;
      if (low === null || high === null || to < 0 || from > width) continue;
      area.rect(from, yOf(high), to - from, base - yOf(high));
      if (high > low) between.rect(from, yOf(high), to - from, yOf(low) - yOf(high));
      if (before === null) line.moveTo(from, yOf(high));
      else line.lineTo(from, yOf(high));
      line.lineTo(to, yOf(high));
      before = high;
    }
    context.fillStyle = context.strokeStyle = palette.counter;
    context.globalAlpha = 0.22;
    context.fill(area);
    context.globalAlpha = 0.45;
    context.fill(between);
    context.globalAlpha = 1;
    context.lineWidth = 1.2;
    context.stroke(line);
  }
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
