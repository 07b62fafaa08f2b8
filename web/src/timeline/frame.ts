// What one frame draws: the rectangles of the tiles in view, as boxes in pixels, never more than MOST. Where there would
// be more, neighbors of a row are drawn as one, ever coarser until they fit.
import type { Band } from "./lanes";
import { ROW, holdsSlices, rowTop } from "./lanes";
import type { Tile } from "./tile";
import { SINGLE } from "./tile";
import type { Stretch, TileRange } from "./view";
import { stretchLength, tileLength } from "./view";

export const MOST = 15_000;

/** A tile as it is drawn: only the part of it between from and to, so that no two tiles draw the same place. */
export interface Piece {
  band: Band;
  tile: Tile;
  from: number;
  to: number;
}

export class Frame {
  count = 0;
  view: Stretch = { from: 0, to: 1 }; // that it was filled for
  coarse = 0; // pixels below which neighbors were drawn as one
  readonly box = new Float32Array(4 * MOST); // x, y, width, height
  readonly kind = new Uint8Array(MOST);
  readonly fill = new Uint8Array(MOST);
  readonly tile: (Tile | null)[] = new Array<Tile | null>(MOST).fill(null);
  readonly at = new Uint32Array(MOST); // in the tile; of several drawn as one, the longest
  readonly band: (Band | null)[] = new Array<Band | null>(MOST).fill(null);
  readonly merged = new Uint32Array(MOST);

  /** Is what was drawn there one slice, of which details can be asked? */
  isSingle(i: number): boolean {
    return this.merged[i] === 1 && this.tile[i]!.slice[this.at[i]!] !== SINGLE;
  }

  /** From where to where the slice would reach on the screen, of which a tile holds only a part. */
  wholeOf(i: number, width: number): { left: number; right: number } {
    const [tile, at] = [this.tile[i]!, this.at[i]!];
    const scale = width / stretchLength(this.view);
    const left = (tile.start[at]! - this.view.from) * scale;
    return { left, right: left + tile.duration[at]! * scale };
  }

  hit(x: number, y: number): number {
    let best = -1;
    for (let i = 0; i < this.count; i++) {
      const [left, top, width, height] = [this.box[4 * i]!, this.box[4 * i + 1]!, this.box[4 * i + 2]!, this.box[4 * i + 3]!];
      if (y < top || y >= top + height || x < left - 1.5 || x > left + width + 1.5) continue;
      if (x >= left && x <= left + width) return i;
      best = i;
    }
    return best;
  }
}

/** The tiles to draw: those of the level where they are here, else what coarser or finer ones know. */
export function pieces(
  bands: Band[],
  range: TileRange,
  get: (level: number, index: number, lane: number) => Tile | undefined,
): { pieces: Piece[]; missing: boolean } {
  const found: Piece[] = [];
  let missing = false;
  const length = tileLength(range.level);
  for (const band of bands) {
    if (band.lane === null || !holdsSlices(band.lane)) continue;
    const lane = band.lane.id;
    for (let index = range.first; index <= range.last; index++) {
      const [from, to] = [index * length, (index + 1) * length];
      const own = get(range.level, index, lane);
      if (own !== undefined) {
        found.push({ band, tile: own, from, to });
        continue;
      }
      missing = true;
      const coarser = firstCoarser(range.level, index, lane, get);
      if (coarser !== undefined) {
        found.push({ band, tile: coarser, from, to });
        continue;
      }
      if (range.level === 0) continue;
      for (const half of [0, 1]) {
        const tile = get(range.level - 1, 2 * index + half, lane);
        if (tile !== undefined) found.push({ band, tile, from: from + (half * length) / 2, to: from + ((half + 1) * length) / 2 });
      }
    }
  }
  return { pieces: found, missing };
}

function firstCoarser(level: number, index: number, lane: number, get: (level: number, index: number, lane: number) => Tile | undefined) {
  for (let up = 1; up <= 12; up++) {
    const tile = get(level + up, Math.floor(index / 2 ** up), lane);
    if (tile !== undefined) return tile;
  }
  return undefined;
}

export interface Screen {
  view: Stretch;
  width: number;
  top: number; // of the scrolled lanes
  height: number;
}

export function fillFrame(frame: Frame, parts: Piece[], screen: Screen): void {
  frame.view = screen.view;
  for (let coarse = 0; ; coarse = coarse === 0 ? 2 : coarse * 2) {
    frame.coarse = coarse;
    if (fillAt(frame, parts, screen, coarse) || coarse > screen.width) return;
  }
}

function fillAt(frame: Frame, parts: Piece[], screen: Screen, coarse: number): boolean {
  const { view, width } = screen;
  const scale = width / stretchLength(view);
  const lastOfRow: number[] = [];
  let n = 0;
  for (const { band, tile, from, to } of parts) {
    lastOfRow.length = 0;
    const [left, right] = [Math.max(from, view.from), Math.min(to, view.to)];
    for (let i = 0; i < tile.count; i++) {
      const row = tile.row[i]!;
      if (row >= band.rows) continue;
      const start = tile.start[i]!;
      const end = start + tile.duration[i]!;
      // A slice of no length is seen all the same, in the tile in which it starts.
      if (end < left || start >= right || (end === left && start < left)) continue;
      const y = rowTop(band, row) - screen.top;
      if (y + ROW < 0 || y > screen.height) continue;
      const many = tile.merged[i]! > 1;
      // The gap to the next is only where a slice really ends; several in one touch, their fill tells of gaps.
      const ends = end <= right && !many ? 1 : 0;
      // Edges that are none (of a tile, of several in one) lie on whole pixels, or their seams would be seen.
      const edge = (time: number, whole: boolean) => (whole ? Math.round((time - view.from) * scale) : (time - view.from) * scale);
      const x = edge(Math.max(start, left), many || start < left);
      const wide = edge(Math.min(end, right), many || end > right) - x;
      const shown = Math.max(wide > 3 ? wide - ends : wide, 0.8);
      if (coarse > 0) {
        const last = lastOfRow[row];
        if (last !== undefined && joins(frame, last, x, shown, coarse)) {
          join(frame, last, tile, i, x + shown);
          continue;
        }
      }
      if (n === MOST) return false;
      frame.box[4 * n] = x;
      frame.box[4 * n + 1] = y;
      frame.box[4 * n + 2] = shown;
      frame.box[4 * n + 3] = ROW - 1;
      frame.kind[n] = tile.kind[i]!;
      frame.fill[n] = tile.fill[i]!;
      frame.tile[n] = tile;
      frame.at[n] = i;
      frame.band[n] = band;
      frame.merged[n] = tile.merged[i]!;
      lastOfRow[row] = n;
      frame.count = ++n;
    }
  }
  frame.count = n;
  return true;
}

function joins(frame: Frame, last: number, x: number, width: number, coarse: number): boolean {
  const [left, wide] = [frame.box[4 * last]!, frame.box[4 * last + 2]!];
  return width < coarse && wide < coarse && x >= left && x - (left + wide) < coarse;
}

function join(frame: Frame, last: number, tile: Tile, i: number, right: number): void {
  const [left, wide] = [frame.box[4 * last]!, frame.box[4 * last + 2]!];
  const joined = Math.max(wide, right - left);
  const filled = wide * frame.fill[last]! + (right - left - wide > 0 ? Math.min(right - left - wide, joined) : 0) * tile.fill[i]!;
  frame.box[4 * last + 2] = joined;
  frame.fill[last] = Math.min(255, joined > 0 ? filled / joined : 255);
  frame.merged[last]! += tile.merged[i]!;
  const longest = frame.tile[last]!.duration[frame.at[last]!]!;
  if (tile.duration[i]! > longest && frame.tile[last] === tile) {
    frame.at[last] = i;
    frame.kind[last] = tile.kind[i]!;
  }
}
