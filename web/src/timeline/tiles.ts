// The tiles that are here, and those asked for. What is not wanted any more is not waited for; what was used longest ago
// is forgotten first.
import type { Decoded, Tile } from "./tile";
import { decodeTiles, tileBytes } from "./tile";
import type { TileRange } from "./view";
import { TILE_PX, tileLength } from "./view";

export type AskTiles = (of: { from: number; to: number; px: number; lanes: number[] }, signal: AbortSignal) => Promise<ArrayBuffer>;

export interface Wanted {
  range: TileRange;
  lanes: number[];
}

interface Asked {
  level: number;
  index: number;
  lanes: Set<number>;
  abort: AbortController;
}

const MOST_AT_ONCE = 4;
const MOST_LANES = 64; // in one question, so that addresses stay short
const MOST_NAMES = 50_000;
const RETRY_MS = 3000;

const keyOf = (level: number, index: number, lane: number) => `${level}/${index}/${lane}`;

export class TileStore {
  private readonly kept = new Map<string, Tile>(); // in the order of use
  private readonly names = new Map<number, string>();
  private readonly failed = new Map<string, number>();
  private asked: Asked[] = [];
  private bytes = 0;
  error: unknown = null;
  total = 0; // tiles asked for so far

  constructor(
    private readonly ask: AskTiles,
    private readonly changed: () => void,
    private readonly most = 96 * 2 ** 20,
  ) {}

  get(level: number, index: number, lane: number): Tile | undefined {
    const key = keyOf(level, index, lane);
    const tile = this.kept.get(key);
    if (tile !== undefined) {
      this.kept.delete(key);
      this.kept.set(key, tile);
    }
    return tile;
  }

  nameOf(id: number): string | undefined {
    return this.names.get(id);
  }

  get waiting(): number {
    return this.asked.length;
  }

  get keptBytes(): number {
    return this.bytes;
  }

  /** Asks for what is wanted and not here, the first of the list first. Returns how many tiles (of one lane) it asked. */
  want(wanted: Wanted[]): number {
    const needed = new Map<string, { level: number; index: number; lanes: number[] }>();
    const all = new Set<string>();
    const coming = new Set(this.asked.flatMap((one) => [...one.lanes].map((lane) => keyOf(one.level, one.index, lane))));
    const now = Date.now();
    for (const { range, lanes } of wanted) {
      for (let index = range.first; index <= range.last; index++) {
        for (const lane of lanes) {
          const key = keyOf(range.level, index, lane);
          if (all.has(key)) continue;
          all.add(key);
          if (this.kept.has(key) || coming.has(key) || (this.failed.get(key) ?? 0) > now) continue;
          const tile = `${range.level}/${index}`;
          const group = needed.get(tile);
          if (group) group.lanes.push(lane);
          else needed.set(tile, { level: range.level, index, lanes: [lane] });
        }
      }
    }
    this.forgetStale(all);
    let count = 0;
    for (const { level, index, lanes } of needed.values()) {
      for (let from = 0; from < lanes.length; from += MOST_LANES) {
        if (this.asked.length >= MOST_AT_ONCE) return count;
        const some = lanes.slice(from, from + MOST_LANES);
        void this.load(level, index, some);
        count += some.length;
      }
    }
    return count;
  }

  close(): void {
    for (const one of this.asked) one.abort.abort();
    this.asked = [];
  }

  private forgetStale(wanted: Set<string>): void {
    this.asked = this.asked.filter((one) => {
      const keep = [...one.lanes].some((lane) => wanted.has(keyOf(one.level, one.index, lane)));
      if (!keep) one.abort.abort();
      return keep;
    });
  }

  private async load(level: number, index: number, lanes: number[]): Promise<void> {
    const abort = new AbortController();
    const one: Asked = { level, index, lanes: new Set(lanes), abort };
    this.asked.push(one);
    this.total += lanes.length;
    const length = tileLength(level);
    try {
      const data = await this.ask({ from: index * length, to: (index + 1) * length, px: TILE_PX, lanes }, abort.signal);
      if (abort.signal.aborted) return;
      this.keep(level, index, lanes, decodeTiles(data));
      this.error = null;
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = error;
      for (const lane of lanes) this.failed.set(keyOf(level, index, lane), Date.now() + RETRY_MS);
      setTimeout(this.changed, RETRY_MS + 10);
    } finally {
      this.asked = this.asked.filter((other) => other !== one);
    }
    this.changed();
  }

  private keep(level: number, index: number, lanes: number[], decoded: Decoded): void {
    for (const [id, name] of Object.entries(decoded.names)) {
      if (this.names.size >= MOST_NAMES) this.names.delete(this.names.keys().next().value!);
      this.names.set(Number(id), name);
    }
    const here = new Map(decoded.tiles.map((tile) => [tile.lane, tile]));
    for (const lane of lanes) {
      // A lane that the answer leaves out has nothing there; that is kept too, or it would be asked for again and again.
      const tile = here.get(lane) ?? emptyTile(lane);
      this.kept.set(keyOf(level, index, lane), tile);
      this.bytes += tileBytes(tile);
    }
    for (const [key, tile] of this.kept) {
      if (this.bytes <= this.most) break;
      this.kept.delete(key);
      this.bytes -= tileBytes(tile);
    }
  }
}

function emptyTile(lane: number): Tile {
  return {
    lane,
    count: 0,
    start: new Float64Array(0),
    duration: new Float64Array(0),
    slice: new Uint32Array(0),
    merged: new Uint32Array(0),
    name: new Uint32Array(0),
    row: new Uint16Array(0),
    kind: new Uint8Array(0),
    fill: new Uint8Array(0),
  };
}
