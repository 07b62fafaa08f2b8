// What lies over the rectangles: names, step boundaries, the chosen stretch and slice, found slices, and curves to linked
// slices. And the ruler above them.
import type { Found, Link, Steps } from "../data/server";
import { formatNumber, formatTick } from "../draw/format";
import type { Frame } from "./frame";
import type { CounterPlace, PathPlace, StripPlace } from "./layers_draw";
import { drawCounters, drawPath, drawStrips } from "./layers_draw";
import { ROW } from "./lanes";
import type { Palette } from "./palette";
import { shadeOf } from "./palette";
import { fitName } from "./text";
import type { Stretch } from "./view";
import { pixelOf, ticks } from "./view";

export const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const LEAST_NAMED = 26; // px
const MOST_NAMES = 1200;

export interface Place {
  x: number;
  right: number;
  y: number; // top of the row
}

export interface Scene {
  view: Stretch;
  width: number;
  height: number;
  palette: Palette;
  steps: Steps[]; // rows of the ruler
  boundaries: { x: number; y: number; height: number }[]; // of steps, in the bands
  range: Stretch | null;
  rangeBands: { y: number; height: number }[]; // of the lanes that are chosen with it
  marks: number[];
  cursor: number | null; // px
  chosen: Place | null;
  links: { link: Link; place: Place }[];
  strips: StripPlace[];
  counters: CounterPlace[];
  path: PathPlace;
  found: Place[];
  foundTimes: Found[];
  separators: { y: number; strong: boolean }[];
}

export function drawNames(context: CanvasRenderingContext2D, frame: Frame, palette: Palette, width: number, nameOf: (id: number) => string | undefined): void {
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.direction = "ltr";
  const measure = (text: string) => context.measureText(text).width;
  let drawn = 0;
  const done = new Set<string>(); // a slice that lies in several tiles has several boxes
  for (let i = 0; i < frame.count && drawn < MOST_NAMES; i++) {
    if (frame.box[4 * i + 2]! < LEAST_NAMED) continue;
    const tile = frame.tile[i]!;
    const at = frame.at[i]!;
    let name = nameOf(tile.name[at]!);
    if (name === undefined) continue;
    let left = Math.max(0, frame.box[4 * i]!);
    let right = Math.min(width, frame.box[4 * i]! + frame.box[4 * i + 2]!);
    const y = frame.box[4 * i + 1]!;
    if (frame.isSingle(i)) {
      const key = `${tile.lane}/${tile.slice[at]!}`;
      if (done.has(key)) continue;
      done.add(key);
      const whole = frame.wholeOf(i, width);
      left = Math.max(0, whole.left);
      right = Math.min(width, whole.right);
    } else {
      name = `${frame.merged[i]!} × ${name}`;
    }
    const text = fitName(name, right - left - 8, measure);
    if (text === "") continue;
    drawn++;
    const strong = frame.fill[i]! > 140;
    context.fillStyle = strong ? (palette.whiteText[Math.floor(shadeOf(frame.kind[i]!, 0) / 16)] ? "#fff" : "#14181d") : palette.ink;
    context.fillText(text, left + 4, y + (ROW - 1) / 2 + 0.5);
  }
}

export function drawScene(context: CanvasRenderingContext2D, scene: Scene): void {
  const { view, width, height, palette } = scene;
  for (const { y, strong } of scene.separators) {
    context.fillStyle = palette.line;
    context.globalAlpha = strong ? 1 : 0.6;
    context.fillRect(0, y, width, 1);
  }
  context.globalAlpha = 1;
  drawBoundaries(context, scene);
  drawStrips(context, scene.strips, scene);
  drawCounters(context, scene.counters, scene);
  if (scene.range !== null) {
    const [from, to] = [pixelOf(view, width, scene.range.from), pixelOf(view, width, scene.range.to)];
    context.fillStyle = palette.meter;
    for (const band of scene.rangeBands) context.fillRect(from, band.y, to - from, band.height);
    context.fillStyle = palette.link;
    context.fillRect(from - 0.5, 0, 1, height);
    context.fillRect(to - 0.5, 0, 1, height);
  }
  context.fillStyle = palette.mark;
  for (const mark of scene.marks) context.fillRect(pixelOf(view, width, mark) - 0.5, 0, 1.5, height);
  context.strokeStyle = palette.mark;
  context.lineWidth = 1.5;
  for (const place of scene.found) context.strokeRect(place.x - 1, place.y - 0.5, Math.max(3, place.right - place.x + 1), ROW);
  drawPath(context, scene.path, scene);
  drawLinks(context, scene);
  if (scene.chosen !== null) {
    context.strokeStyle = palette.ink;
    context.lineWidth = 2;
    context.strokeRect(scene.chosen.x - 1, scene.chosen.y - 1, Math.max(4, scene.chosen.right - scene.chosen.x + 2), ROW + 1);
  }
  if (scene.cursor !== null) {
    context.fillStyle = palette.ink;
    context.globalAlpha = 0.35;
    context.fillRect(scene.cursor, 0, 1, height);
    context.globalAlpha = 1;
  }
}

function drawBoundaries(context: CanvasRenderingContext2D, { boundaries, palette }: Scene): void {
  context.fillStyle = palette.soft;
  context.globalAlpha = 0.45;
  for (const { x, y, height } of boundaries) context.fillRect(x, y, 1, height);
  context.globalAlpha = 1;
}

function drawLinks(context: CanvasRenderingContext2D, scene: Scene): void {
  const { chosen, palette } = scene;
  if (chosen === null) return;
  context.strokeStyle = palette.ink;
  context.fillStyle = palette.ink;
  context.lineWidth = 1.5;
  for (const { place } of scene.links) {
    // From the earlier to the later, which is the way of cause and effect.
    const [from, to] = place.x < chosen.x ? [place, chosen] : [chosen, place];
    const [x, y] = [Math.min(from.right, from.x + 4), from.y + ROW / 2];
    const [toX, toY] = [to.x, to.y + ROW / 2];
    const bend = Math.max(20, Math.min(160, Math.abs(toX - x) / 2));
    context.globalAlpha = 0.8;
    context.beginPath();
    context.moveTo(x, y);
    context.bezierCurveTo(x + bend, y, toX - bend, toY, toX - 3, toY);
    context.stroke();
    context.beginPath();
    context.moveTo(toX, toY);
    context.lineTo(toX - 7, toY - 4);
    context.lineTo(toX - 7, toY + 4);
    context.fill();
    context.globalAlpha = 1;
  }
}

const TICKS = 20;
export const STEP_ROW = 20;

export function rulerHeight(rows: number): number {
  return TICKS + STEP_ROW * Math.max(1, rows);
}

export function drawRuler(context: CanvasRenderingContext2D, scene: Scene): void {
  const { view, width, palette, steps } = scene;
  const height = rulerHeight(steps.length);
  context.clearRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.direction = "ltr";
  const measure = (text: string) => context.measureText(text).width;
  const chosen = rangeLabel(scene, measure);
  const { step, times } = ticks(view, width, 130);
  for (const time of times) {
    const x = pixelOf(view, width, time);
    context.fillStyle = palette.line;
    context.fillRect(x, 0, 1, 18);
    const text = formatTick(time, step);
    if (chosen !== null && x + 4 < chosen.right && x + 4 + measure(text) > chosen.left) continue;
    context.fillStyle = palette.soft;
    context.fillText(text, x + 4, 9);
  }
  steps.forEach((row, i) => drawSteps(context, scene, row, TICKS + i * STEP_ROW, measure));
  if (scene.range !== null && chosen !== null) {
    const [from, to] = [pixelOf(view, width, scene.range.from), pixelOf(view, width, scene.range.to)];
    context.fillStyle = palette.link;
    context.fillRect(from, 16, to - from, 2);
    context.fillStyle = palette.background;
    context.fillRect(chosen.left, 0, chosen.right - chosen.left, 15);
    context.fillStyle = palette.link;
    context.fillText(chosen.text, chosen.left + LABEL_ROOM, 9);
  }
  context.fillStyle = palette.mark;
  for (const mark of scene.marks) {
    const x = pixelOf(view, width, mark);
    context.beginPath();
    context.moveTo(x, 2);
    context.lineTo(x + 9, 6);
    context.lineTo(x, 10);
    context.fill();
    context.fillRect(x - 0.5, 2, 1.5, height);
  }
  for (const found of scene.foundTimes) {
    const x = pixelOf(view, width, found.start);
    if (x >= 0 && x <= width) context.fillRect(x - 1, 15, 2, 4);
  }
}

const stepName = (name: string) => (/^\d+$/.test(name) ? `step ${name}` : name);

const LABEL_ROOM = 4; // px around the text

/** Where the length of the chosen stretch stands among the ticks: none of their texts may touch it. */
export function rangeLabel(scene: Pick<Scene, "view" | "width" | "range">, measure: (text: string) => number): { text: string; left: number; right: number } | null {
  const { view, width, range } = scene;
  if (range === null) return null;
  const text = formatNumber(range.to - range.from, "ns");
  const wide = measure(text) + 2 * LABEL_ROOM;
  const middle = (pixelOf(view, width, range.from) + pixelOf(view, width, range.to)) / 2;
  const left = Math.max(0, Math.min(middle - wide / 2, width - wide));
  return { text, left, right: left + wide };
}

function drawSteps(context: CanvasRenderingContext2D, scene: Scene, steps: Steps, top: number, measure: (text: string) => number): void {
  const { view, width, palette } = scene;
  let last = -Infinity;
  for (let i = 0; i < steps.start.length; i++) {
    const [from, to] = [pixelOf(view, width, steps.start[i]!), pixelOf(view, width, steps.end[i]!)];
    if (to < 0 || from > width || to - last < 2) continue;
    last = to;
    context.fillStyle = i % 2 === 0 ? palette.tint : palette.line;
    context.fillRect(from, top, Math.max(1, to - from), STEP_ROW - 2);
    context.fillStyle = palette.soft;
    context.fillRect(from, top, 1, STEP_ROW - 2);
    const left = Math.max(0, from);
    const room = Math.min(width, to) - left - 8;
    const text = room < 14 ? "" : fitName(`${stepName(steps.name[i] ?? String(i))} · ${formatNumber(steps.end[i]! - steps.start[i]!, "ns")}`, room, measure);
    context.fillStyle = palette.ink;
    if (text !== "") context.fillText(text, left + 4, top + 9);
  }
}
