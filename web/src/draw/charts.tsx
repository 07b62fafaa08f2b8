// The series of an answer that belong in charts: one lane for each metric over one axis of time, of one rank at a time,
// with what that rank did meanwhile behind. Series without a metric are in the timeline.
import { useMemo } from "preact/hooks";
import type { Answer, Bands, Series } from "../data/report";
import { asNumber } from "../data/report";
import { Legend } from "./bars";
import { seriesColor } from "./color";
import { formatNumber, words } from "./format";
import { useNumber } from "./page_state";
import { Strip } from "./strip";
import type { Backdrop, Band, Lane } from "./strip";

export function isCharted(series: Series): boolean {
  return series.metric !== undefined;
}

type Rank = number | null; // null: what is of no rank

/** The charted series by rank. What is of no rank is a group of its own, the last. */
export function chartsByRank(answer: Answer): Map<Rank, Series[]> {
  const charted = Object.values(answer.series).filter((series) => isCharted(series) && series.t_ns.length > 0);
  const ranks = [...new Set(charted.flatMap((series) => series.ranks ?? []))].sort((a, b) => a - b);
  const groups = new Map<Rank, Series[]>();
  for (const rank of ranks) groups.set(rank, charted.filter((series) => series.ranks?.includes(rank)));
  const rest = charted.filter((series) => (series.ranks ?? []).length === 0);
  if (rest.length > 0) groups.set(null, rest);
  return groups;
}

function times(of: (number | bigint)[]): number[] {
  return of.map((t) => asNumber(t) ?? 0);
}

function bandsFrom(bands: Bands | undefined, start: number): Band[] {
  if (bands === undefined) return [];
  const ends = times(bands.end_ns);
  return times(bands.start_ns).map((t, i) => ({
    start: t - start,
    end: ends[i]! - start,
    label: bands.label[i] ?? "",
    share: bands.share[i] ?? 1,
  }));
}

interface Drawn {
  lanes: Lane[];
  zero: string[]; // metrics that were 0 all the time
  length: number;
  backdrop: Backdrop;
}

/** The color of a line by what it tells of, where that has one everywhere on the page. */
export type LineColor = (target: string) => string;

/** The sum of the other lines of its lane is as dark as text. */
const isSum = (target: string) => target.startsWith("all ");

/** Series of one metric share a lane where their numbers are of one kind. */
export function drawn(series: Series[], bands: Bands[], rank: Rank, colorOf?: LineColor): Drawn {
  const own = `rank ${rank}`;
  const points = series.map((one) => times(one.t_ns));
  const ofRank = (name: string) => bands.find((one) => one.rank === rank && one.name === name);
  const known = [...points, ...bands.filter((one) => one.rank === rank).flatMap((one) => [times(one.start_ns), times(one.end_ns)])];
  const start = Math.min(...known.map((t) => t[0]!));
  const length = Math.max(1, ...known.map((t) => t[t.length - 1]! - start));
  const lanes = new Map<string, Lane>();
  const zero = new Set<string>();
  series.forEach((one, i) => {
    const metric = one.metric!;
    if (one.v.every((v) => v === null)) return;
    if (one.v.every((v) => v === null || v === 0)) {
      zero.add(words(metric));
      return;
    }
    const key = JSON.stringify([metric, one.unit, one.suffix]);
    const lane = lanes.get(key) ?? { name: metric, unit: one.unit, suffix: one.suffix ?? "", lines: [] };
    const target = one.target ?? "";
    const parts = lane.lines.filter((line) => !isSum(line.name)).length;
    const color = colorOf?.(target) ?? (isSum(target) ? "var(--ink)" : seriesColor(parts));
    lane.lines.push({ name: target, color, t: points[i]!.map((t) => t - start), v: one.v });
    lanes.set(key, lane);
  });
  const backdrop = { steps: bandsFrom(ofRank("steps"), start), phases: bandsFrom(ofRank("phases"), start) };
  const banded = backdrop.steps.length + backdrop.phases.length > 0;
  for (const { name, lines } of lanes.values()) {
    if (banded && lines.length === 1) lines[0]!.color = "var(--ink)"; // told apart from the bands by its darkness
    if (lines.length === 1 && lines[0]!.name === own) lines[0]!.name = "";
    zero.delete(words(name));
  }
  return { lanes: [...lanes.values()], zero: [...zero], length, backdrop };
}

function rankLabel(rank: Rank, series: Series[]): string {
  if (rank !== null) return `rank ${rank}`;
  const targets = [...new Set(series.map((one) => one.target ?? ""))];
  return targets.length === 1 ? targets[0]! : `of no rank: ${targets.slice(0, 3).join(", ")}${targets.length > 3 ? " …" : ""}`;
}

function OneRank(props: { answer: Answer; rank: Rank; series: Series[]; colorOf?: LineColor }) {
  const { answer, rank, series } = props;
  const { lanes, zero, length, backdrop } = useMemo(() => drawn(series, answer.bands ?? [], rank, props.colorOf), [answer, rank]);
  const phases = [...new Set(backdrop.phases.map((band) => band.label))];
  const merged = backdrop.phases.some((band) => band.share < 1);
  return (
    <>
      {phases.length > 0 && <Legend parts={phases.map((name) => ({ name, value: null }))} />}
      {lanes.length > 0 && (
        <Strip
          label={`${lanes.map((lane) => words(lane.name)).join(", ")} over ${formatNumber(length, "ns")}`}
          lanes={lanes}
          marks={[]}
          length={length}
          backdrop={backdrop}
        />
      )}
      {backdrop.steps.length > 0 && (
        <p class="soft">
          Behind the curves: every other step shaded, and the phases. Drag to look closer.
          {merged && " Steps too narrow to be told apart are one; what its phases have of it is stacked, not when they were."}
        </p>
      )}
      {zero.length > 0 && <p class="soft">0 all the time: {zero.join(", ")}.</p>}
    </>
  );
}

export function Charts(props: { name: string; answer: Answer; colorOf?: LineColor }) {
  const { answer } = props;
  const groups = useMemo(() => chartsByRank(answer), [answer]);
  const [chosen, choose] = useNumber(`show.${props.name}.charts`, groups.size);
  const shown = [...groups][chosen];
  if (shown === undefined) return null;
  return (
    <div class="charts">
      <h3>
        Over time
        {groups.size > 1 && (
          <select aria-label="of which rank" value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
            {[...groups].map(([rank, series], i) => (
              <option value={i}>{rankLabel(rank, series)}</option>
            ))}
          </select>
        )}
      </h3>
      <OneRank key={chosen} answer={answer} rank={shown[0]} series={shown[1]} colorOf={props.colorOf} />
    </div>
  );
}
