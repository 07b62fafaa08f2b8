// What one frame asks the server for: tiles of the lanes in view, a little around it, the minimap's; and of what is drawn
// over and beside them, that of the ranks and lanes in view.
import type { Lane, RunState, TimelineIndex } from "../data/server";
import { askTiles } from "../data/server";
import type { Band, Layout } from "./lanes";
import { bandsBetween, busiest, holdsSlices } from "./lanes";
import { Layers } from "./layers";
import type { Tile } from "./tile";
import { TileStore } from "./tiles";
import type { Stretch, TileRange } from "./view";
import { levelFor, tilesIn, withMargin } from "./view";

export interface Seen {
  view: Stretch;
  width: number;
  height: number;
  top: number;
  layout: Layout;
  bands: Band[]; // in view
  rank: number; // whose busiest stream the minimap shows
  path: boolean; // are critical paths shown?
}

export class Asking {
  readonly store: TileStore;
  readonly layers: Layers;

  constructor(
    run: RunState,
    private readonly index: TimelineIndex,
    changed: () => void,
  ) {
    this.store = new TileStore((of, signal) => askTiles(run, of, signal), changed);
    this.layers = new Layers(run, changed);
  }

  get error(): unknown {
    return this.store.error ?? this.layers.error;
  }

  close(): void {
    this.store.close();
    this.layers.close();
  }

  rangeOf(view: Stretch, width: number): TileRange {
    return tilesIn(view, levelFor(view, width), this.index.end);
  }

  /** Returns how many tiles (of one lane) it asked for. */
  askFor(seen: Seen): number {
    const { view, width, height, top, bands } = seen;
    const range = this.rangeOf(view, width);
    const ids = (of: Band[], wanted: (lane: Lane) => boolean) => of.flatMap((band) => (band.lane !== null && wanted(band.lane) ? [band.lane.id] : []));
    const around = bandsBetween(seen.layout, top - height / 4, top + height * 1.25);
    const lane = this.minimapLane(seen.rank);
    const count = this.store.want([
      { range, lanes: ids(bands, holdsSlices) },
      { range: this.wholeRange(width), lanes: lane === null ? [] : [lane.id] },
      { range: withMargin(range, this.index.end), lanes: ids(bands, holdsSlices) },
      { range, lanes: ids(around, holdsSlices) },
    ]);
    const ranks = [...new Set(bands.map((band) => band.rank))].filter((rank) => rank < this.index.ranks.length);
    this.layers.path.want(range, seen.path ? ranks : []);
    this.layers.phases.want(range, ranks);
    this.layers.counters.want(range, ids(bands, (of) => !holdsSlices(of)));
    return count;
  }

  tilesOfWhole(rank: number, width: number): Tile[] {
    const lane = this.minimapLane(rank);
    const range = this.wholeRange(width);
    const tiles: Tile[] = [];
    for (let at = range.first; lane !== null && at <= range.last; at++) {
      const tile = this.store.get(range.level, at, lane.id);
      if (tile !== undefined) tiles.push(tile);
    }
    return tiles;
  }

  private minimapLane(rank: number): Lane | null {
    return busiest(this.index.lanes.filter((lane) => lane.rank === rank));
  }

  private wholeRange(width: number): TileRange {
    return this.rangeOf({ from: 0, to: Math.max(1, this.index.end) }, width);
  }
}
