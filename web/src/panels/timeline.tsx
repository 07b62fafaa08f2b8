// What happened when: every series over time as a lane, one strip per rank (clocks of ranks differ), with the starts of
// the steps as marks. Series that are charted are with their answer.
import type { Report, Series } from "../data/report";
import { asNumber, columnIndex, table } from "../data/report";
import { isCharted } from "../draw/charts";
import { seriesColor, partColor } from "../draw/color";
import { words } from "../draw/format";
import { Strip } from "../draw/strip";
import type { Lane, Mark } from "../draw/strip";
import type { Panel } from "../draw/panel";

const MAX_STRIPS = 8;

interface Found {
  name: string;
  series: Series;
}

/** Series over time by rank; "" where the name carries none. The lengths of steps are drawn as bars elsewhere. */
export function seriesByRank(report: Report): Map<string, Found[]> {
  const groups = new Map<string, Found[]>();
  for (const [answer, { series }] of Object.entries(report.answers)) {
    if (answer === "steps") continue;
    for (const [name, one] of Object.entries(series)) {
      if (one.t_ns.length === 0 || isCharted(one)) continue;
      const rank = /(?:^|_)rank_?(\d+)/.exec(name)?.[1] ?? "";
      const found = { name: name.replace(/_?rank_?\d+/, "").replace(/_device_?(\d+)/, " device $1") || answer, series: one };
      const group = groups.get(rank);
      if (group) group.push(found);
      else groups.set(rank, [found]);
    }
  }
  return groups;
}

/** The end of a lane: its last value holds as long as the one before it. */
function endOf(t: number[]): number {
  const last = t[t.length - 1]!;
  return t.length > 1 ? last + (last - t[t.length - 2]!) : last;
}

function stepMarks(report: Report, rank: string, start: number, length: number): Mark[] {
  const steps = table(report, "steps", "steps");
  if (!steps) return [];
  const at = (name: string) => columnIndex(steps, name);
  return steps.rows
    .filter((row) => rank === "" || String(row[at("rank")]) === rank)
    .map((row) => ({ t: (asNumber(row[at("start_ns")]) ?? NaN) - start, label: String(row[at("step")] ?? "") }))
    .filter((mark) => mark.t >= 0 && mark.t <= length)
    .sort((a, b) => a.t - b.t);
}

function OneRank(props: { report: Report; rank: string; found: Found[]; several: boolean }) {
  const { report, rank, found } = props;
  const times = found.map(({ series }) => series.t_ns.map((t) => asNumber(t) ?? 0));
  const start = Math.min(...times.map((t) => t[0]!));
  const length = Math.max(1, ...times.map((t) => endOf(t) - start));
  const devices = new Set(found.map(({ name }) => / device \d+$/.exec(name)?.[0]));
  const lanes: Lane[] = found.map(({ name: full, series }, i) => {
    const name = devices.size > 1 ? full : full.replace(/ device \d+$/, "");
    const part = partColor(name);
    const color = part === "var(--c-other)" ? seriesColor(i) : part;
    return { name, unit: series.unit, lines: [{ name: "", color, t: times[i]!.map((t) => t - start), v: series.v }] };
  });
  const marks = stepMarks(report, rank, start, length);
  return (
    <>
      {rank !== "" && props.several && <h3>rank {rank}</h3>}
      <Strip label={`${lanes.map((lane) => words(lane.name)).join(", ")} over time`} lanes={lanes} marks={marks} length={length} />
    </>
  );
}

function View(props: { report: Report }) {
  const groups = [...seriesByRank(props.report)];
  return (
    <>
      {groups.slice(0, MAX_STRIPS).map(([rank, found]) => (
        <OneRank report={props.report} rank={rank} found={found} several={groups.length > 1} />
      ))}
      {groups.length > MAX_STRIPS && <p class="soft">Drawn: the first {MAX_STRIPS} of {groups.length} ranks.</p>}
    </>
  );
}

export const timeline: Panel = {
  id: "timeline",
  label: "Timeline",
  title: "What happened when?",
  shows: [],
  applies: (report) => seriesByRank(report).size > 0,
  view: View,
};
