// What is drawn over and beside the slices (critical paths, phases, counters): asked for like tiles, for the stretch in
// view and the ranks or lanes in view alone. Until an answer is there, what is known of another stretch is drawn.
import type { CounterPoints, CriticalPaths, PathOfRank, Part, Phases, PhasesOfRank, RunState } from "../data/server";
import { MOST_PX, askCounters, askPath, askPhases, isAbort } from "../data/server";
import type { TileRange } from "./view";
import { TILE_PX, tileLength } from "./view";

const RETRY_MS = 3000;
const MOST_KEPT = 512;

export type Ask<T> = (of: Part, signal: AbortSignal) => Promise<Map<number, T>>;

export class Layer<T> {
  error: unknown = null;
  private readonly kept = new Map<number, { of: string; value: T | undefined }>();
  private asking: { of: string; ids: Set<number>; abort: AbortController } | null = null;
  private notBefore = 0;

  constructor(
    private readonly ask: Ask<T>,
    private readonly changed: () => void,
  ) {}

  get(id: number): T | undefined {
    return this.kept.get(id)?.value;
  }

  get waiting(): boolean {
    return this.asking !== null;
  }

  /** Asks for what of it is not here; one question at a time. */
  want(range: TileRange, ids: number[]): void {
    const of = `${range.level}/${range.first}-${range.last}`;
    const missing = ids.filter((id) => this.kept.get(id)?.of !== of);
    if (this.asking !== null) {
      const asked = this.asking;
      if (asked.of === of && missing.some((id) => asked.ids.has(id))) return;
      asked.abort.abort();
      this.asking = null;
    }
    if (missing.length === 0 || Date.now() < this.notBefore) return;
    void this.load(of, range, missing);
  }

  close(): void {
    this.asking?.abort.abort();
  }

  private async load(of: string, range: TileRange, ids: number[]): Promise<void> {
    const abort = new AbortController();
    const asking = { of, ids: new Set(ids), abort };
    this.asking = asking;
    const length = tileLength(range.level);
    const tiles = range.last - range.first + 1;
    try {
      const found = await this.ask({ from: range.first * length, to: (range.last + 1) * length, px: Math.min(tiles * TILE_PX, MOST_PX), ids }, abort.signal);
      if (abort.signal.aborted) return;
      // What the answer leaves out has nothing there; that is kept too, or it would be asked for again and again.
      for (const id of ids) {
        this.kept.delete(id);
        this.kept.set(id, { of, value: found.get(id) });
      }
      for (const id of this.kept.keys()) {
        if (this.kept.size <= MOST_KEPT) break;
        this.kept.delete(id);
      }
      this.error = null;
    } catch (error) {
      if (abort.signal.aborted || isAbort(error)) return;
      this.error = error;
      this.notBefore = Date.now() + RETRY_MS;
      setTimeout(this.changed, RETRY_MS + 10);
    } finally {
      if (this.asking === asking) this.asking = null;
    }
    this.changed();
  }
}

export interface Path extends PathOfRank {
  words: CriticalPaths; // what its classes and evidences are called
}

export interface PhaseStrip extends PhasesOfRank {
  names: string[];
}

export class Layers {
  readonly path: Layer<Path>;
  readonly phases: Layer<PhaseStrip>;
  readonly counters: Layer<CounterPoints>;

  constructor(run: RunState, changed: () => void) {
    const by = <T>(all: T[], id: (of: T) => number) => new Map(all.map((of) => [id(of), of]));
    const path = (words: CriticalPaths) => by(words.ranks.map((of) => ({ ...of, words })), (of) => of.rank);
    const phases = ({ phases: names, ranks }: Phases) => by(ranks.map((of) => ({ ...of, names })), (of) => of.rank);
    this.path = new Layer(async (of, signal) => path(await askPath(run, of, signal)), changed);
    this.phases = new Layer(async (of, signal) => phases(await askPhases(run, of, signal)), changed);
    const counters = (lanes: CounterPoints[], end: number) => by(lanes.map((of) => ({ ...of, end })), (of) => of.id);
    this.counters = new Layer(async (of, signal) => counters((await askCounters(run, of, signal)).lanes, of.to), changed);
  }

  get error(): unknown {
    return this.path.error ?? this.phases.error ?? this.counters.error;
  }

  close(): void {
    for (const layer of [this.path, this.phases, this.counters]) layer.close();
  }
}
