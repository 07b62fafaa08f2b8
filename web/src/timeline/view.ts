// The math of the view: which stretch of time is seen, at which zoom level its tiles are asked for, and which tiles those
// are. Levels are powers of two of ns per pixel, and tiles lie on a fixed grid, so that panning re-uses them.

export interface Stretch {
  from: number; // ns after the origin
  to: number;
}

export const TILE_PX = 1024;
export const LEAST_NS = 20; // closer than this there is nothing to see

export function stretchLength(of: Stretch): number {
  return of.to - of.from;
}

/** Moved and cut so that it lies in 0..end and is not closer than can be seen. */
export function clamped(view: Stretch, end: number): Stretch {
  const whole = Math.max(end, LEAST_NS);
  const length = Math.min(Math.max(stretchLength(view), LEAST_NS), whole);
  const middle = (view.from + view.to) / 2;
  const wanted = length === stretchLength(view) ? view.from : middle - length / 2;
  const from = Math.min(Math.max(0, wanted), whole - length);
  return { from, to: from + length };
}

/** `factor` below 1 goes closer; the time `at` stays where it is on the screen. */
export function zoomed(view: Stretch, factor: number, at: number, end: number): Stretch {
  const length = Math.min(Math.max(stretchLength(view) * factor, LEAST_NS), Math.max(end, LEAST_NS));
  const share = (at - view.from) / stretchLength(view);
  const from = at - share * length;
  return clamped({ from, to: from + length }, end);
}

/** By a share of what is seen: 0.5 is half a screen later. */
export function panned(view: Stretch, share: number, end: number): Stretch {
  const by = stretchLength(view) * share;
  return clamped({ from: view.from + by, to: view.to + by }, end);
}

/** The stretch with some room at both sides. */
export function fitted(stretch: Stretch, end: number): Stretch {
  const room = Math.max(stretchLength(stretch) * 0.1, LEAST_NS / 2);
  return clamped({ from: stretch.from - room, to: stretch.to + room }, end);
}

/** The view from which a slice is seen well: the same where it is, else around it, as near as it needs. */
export function revealed(view: Stretch, width: number, of: { start: number; duration: number }, end: number): Stretch {
  const length = stretchLength(view);
  const pixels = (of.duration / length) * width;
  const middle = of.start + of.duration / 2;
  const wanted = pixels < 3 ? of.duration * 100 : pixels > width ? of.duration * 1.2 : length;
  const seen = of.start >= view.from && of.start + of.duration <= view.to;
  if (wanted === length && seen) return view;
  return clamped({ from: middle - wanted / 2, to: middle + wanted / 2 }, end);
}

export function pixelOf(view: Stretch, width: number, time: number): number {
  return ((time - view.from) / stretchLength(view)) * width;
}

export function timeOf(view: Stretch, width: number, pixel: number): number {
  return view.from + (pixel / width) * stretchLength(view);
}

/** A level's tiles are drawn at half their size to their full size: never coarser than the screen. */
export function levelFor(view: Stretch, width: number, coarser = 0): number {
  return Math.max(0, Math.floor(Math.log2(stretchLength(view) / Math.max(1, width)))) + coarser;
}

export function tileLength(level: number): number {
  return TILE_PX * 2 ** level;
}

export interface TileRange {
  level: number;
  first: number;
  last: number; // included
}

export function tilesIn(view: Stretch, level: number, end: number): TileRange {
  const length = tileLength(level);
  const most = Math.max(0, Math.ceil(end / length) - 1);
  const clip = (index: number) => Math.min(Math.max(0, index), most);
  return { level, first: clip(Math.floor(view.from / length)), last: clip(Math.ceil(view.to / length) - 1) };
}

/** One tile more at each side, which the next pan will show. */
export function withMargin(range: TileRange, end: number): TileRange {
  const most = Math.max(0, Math.ceil(end / tileLength(range.level)) - 1);
  return { level: range.level, first: Math.max(0, range.first - 1), last: Math.min(most, range.last + 1) };
}

/** Of what begins at these times, one after the other: the index of what goes on at `time`; the first where none does. */
export function indexAt(starts: number[], time: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** Times of the ruler's lines: 1, 2 or 5 times a power of ten apart, at most one in `pixels`. */
export function ticks(view: Stretch, width: number, pixels: number): { step: number; times: number[] } {
  const least = (stretchLength(view) / Math.max(1, width)) * pixels;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999999)! * power);
  const times: number[] = [];
  for (let n = Math.ceil(view.from / step); n * step <= view.to; n++) times.push(n * step);
  return { step, times };
}
