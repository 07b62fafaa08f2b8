// The whole recording in one strip: its steps, what the busiest stream did, and the window that is seen of it.
import type { Steps } from "../data/server";
import type { Palette } from "./palette";
import { shadeOf } from "./palette";
import type { Tile } from "./tile";
import type { Stretch } from "./view";
import { pixelOf } from "./view";

export const MINIMAP = 34;

export function drawMinimap(
  context: CanvasRenderingContext2D,
  of: { width: number; end: number; view: Stretch; steps: Steps | null; tiles: Tile[]; palette: Palette; found: { start: number }[]; marks: number[] },
): void {
  const { width, end, view, steps, palette } = of;
  const whole = { from: 0, to: Math.max(1, end) };
  context.clearRect(0, 0, width, MINIMAP);
  context.fillStyle = palette.tint;
  context.fillRect(0, 0, width, MINIMAP);
  if (steps !== null) {
    let last = -Infinity;
    for (let i = 0; i < steps.start.length; i++) {
      const [from, to] = [pixelOf(whole, width, steps.start[i]!), pixelOf(whole, width, steps.end[i]!)];
      if (to - last < 1.5) continue;
      last = to;
      context.fillStyle = i % 2 === 0 ? palette.line : palette.soft;
      context.globalAlpha = i % 2 === 0 ? 0.9 : 0.45;
      context.fillRect(from, 0, Math.max(0.5, to - from), 9);
    }
    context.globalAlpha = 1;
  }
  for (const tile of of.tiles) {
    for (let i = 0; i < tile.count; i++) {
      if (tile.row[i] !== 0) continue;
      const x = pixelOf(whole, width, tile.start[i]!);
      context.fillStyle = palette.css[shadeOf(tile.kind[i]!, tile.fill[i]!)]!;
      context.fillRect(x, 12, Math.max(0.6, pixelOf(whole, width, tile.start[i]! + tile.duration[i]!) - x), 18);
    }
  }
  context.fillStyle = palette.mark;
  for (const { start } of of.found) context.fillRect(pixelOf(whole, width, start) - 0.5, 9, 1, 24);
  for (const mark of of.marks) context.fillRect(pixelOf(whole, width, mark) - 1, 0, 2, MINIMAP);
  const [from, to] = [pixelOf(whole, width, view.from), pixelOf(whole, width, view.to)];
  context.fillStyle = palette.background;
  context.globalAlpha = 0.55;
  context.fillRect(0, 0, from, MINIMAP);
  context.fillRect(to, 0, width - to, MINIMAP);
  context.globalAlpha = 1;
  context.strokeStyle = palette.link;
  context.lineWidth = 1.5;
  context.strokeRect(Math.max(0.75, from), 0.75, Math.max(3, Math.min(width - 0.75, to) - Math.max(0.75, from)), MINIMAP - 1.5);
}
