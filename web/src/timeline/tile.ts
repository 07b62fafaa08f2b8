// The binary tiles of the server: columns of rectangles, lane after lane, and a trailer with the names of those wide
// enough to carry one. Everything is checked against the length before it is read.

export const SINGLE = 0xffffffff; // as a slice: several are merged
const MAGIC = 0x31545353; // "SST1"
const HEADER = 16;

export interface Tile {
  lane: number;
  count: number;
  start: Float64Array; // ns after the origin
  duration: Float64Array;
  slice: Uint32Array;
  merged: Uint32Array; // how many slices each stands for
  name: Uint32Array;
  row: Uint16Array;
  kind: Uint8Array; // class of the slice, or of the longest
  fill: Uint8Array; // 0..255: share of the stretch that is filled
}

export interface Decoded {
  tiles: Tile[];
  names: Record<string, string>;
}

const padded = (bytes: number) => Math.ceil(bytes / 8) * 8;

export function decodeTiles(data: ArrayBuffer): Decoded {
  if (data.byteLength < HEADER) throw new Error("a tile ends inside its heading");
  const view = new DataView(data);
  if (view.getUint32(0, true) !== MAGIC) throw new Error("this is no tile");
  const lanes = view.getUint32(4, true);
  const rects = view.getUint32(8, true);
  const trailer = view.getUint32(12, true);
  const columns = [8, 8, 4, 4, 4, 2, 1, 1].map((size) => padded(size * rects));
  const whole = HEADER + 8 * lanes + columns.reduce((sum, size) => sum + size, 0) + trailer;
  if (whole > data.byteLength) throw new Error(`a tile has ${data.byteLength} bytes, its heading says ${whole}`);
  let at = HEADER + 8 * lanes;
  const next = (column: number) => {
    const from = at;
    at += columns[column]!;
    return from;
  };
  const start = new Float64Array(data, next(0), rects);
  const duration = new Float64Array(data, next(1), rects);
  const slice = new Uint32Array(data, next(2), rects);
  const merged = new Uint32Array(data, next(3), rects);
  const name = new Uint32Array(data, next(4), rects);
  const row = new Uint16Array(data, next(5), rects);
  const kind = new Uint8Array(data, next(6), rects);
  const fill = new Uint8Array(data, next(7), rects);
  const text = new TextDecoder().decode(new Uint8Array(data, at, trailer));
  const names = trailer === 0 ? {} : ((JSON.parse(text) as { names?: Record<string, string> }).names ?? {});
  const tiles: Tile[] = [];
  for (let i = 0, from = 0; i < lanes; i++) {
    const lane = view.getUint32(HEADER + 8 * i, true);
    const count = view.getUint32(HEADER + 8 * i + 4, true);
    const to = from + count;
    if (to > rects) throw new Error("the lanes of a tile have more rectangles than the tile");
    // Copies: a lane that is kept must not keep the whole answer alive.
    tiles.push({
      lane,
      count,
      start: start.slice(from, to),
      duration: duration.slice(from, to),
      slice: slice.slice(from, to),
      merged: merged.slice(from, to),
      name: name.slice(from, to),
      row: row.slice(from, to),
      kind: kind.slice(from, to),
      fill: fill.slice(from, to),
    });
    from = to;
  }
  return { tiles, names };
}

/** Bytes that a kept tile holds: 32 a rectangle, and what every object and key costs. */
export function tileBytes(tile: Tile): number {
  return tile.count * 32 + 1000;
}
