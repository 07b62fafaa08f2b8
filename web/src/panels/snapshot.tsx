// What fills the memory of the devices: classes over time or over events, what lives at the peak, where memory ran out
// and in how many pieces the free memory is. Of one snapshot and device at a time.
import { useMemo } from "preact/hooks";
import type { Answer, Report, Series, Table, Value } from "../data/report";
import { asNumber, columnIndex, table } from "../data/report";
import { TabbedTables } from "../draw/answer";
import { BarList } from "../draw/bar_list";
import { StackedBar } from "../draw/bars";
import { Charts } from "../draw/charts";
import { partColor, seriesColor } from "../draw/color";
import { formatNumber, grouped } from "../draw/format";
import { useNumber } from "../draw/page_state";
import type { Panel } from "../draw/panel";
import { Figures, Notes } from "../draw/parts";
import { StackChart } from "../draw/stack_chart";
import type { Layer, Moment } from "../draw/stack_chart";
import { Tabs } from "../draw/tabs";

const BY_CLASS = /^memory by class, /;
const FIRST = ["devices", "ooms", "peak_classes", "peak_stacks", "peak_evidence", "growth", "ranks", "rank_differences"];
const LAST = ["settings", "stacks"];
const MAX_MOMENTS = 6; // drawn in pieces; the table has them all

type Axis = "time" | "events";

interface Place {
  snapshot: Value;
  device: Value;
  rank: Value;
}

function cell(of: Table, row: Value[], name: string): Value {
  return row[columnIndex(of, name)] ?? null;
}

function places(devices: Table): Place[] {
  return devices.rows.map((row) => ({
    snapshot: cell(devices, row, "snapshot"),
    device: cell(devices, row, "device"),
    rank: cell(devices, row, "rank"),
  }));
}

function rowsOf(of: Table | undefined, place: Place): Value[][] {
  if (of === undefined) return [];
  return of.rows.filter((row) => cell(of, row, "snapshot") === place.snapshot && cell(of, row, "device") === place.device);
}

/** Classes that are none of the categories have colors of their own. */
function colorOf(name: string, index: number): string {
  const color = partColor(name);
  return color === "var(--c-other)" && name !== "unknown" && name !== "other classes" ? seriesColor(index) : color;
}

function seriesOf(answer: Answer, place: Place, metric: (name: string) => boolean): Series[] {
  return Object.entries(answer.series)
    .filter(([name, one]) => name.endsWith(`_snapshot${place.snapshot}_${place.device}`) && metric(one.metric ?? name))
    .map(([, one]) => one);
}

function along(series: Series, axis: Axis): number[] {
  return (axis === "time" ? series.t_ns : (series.event ?? [])).map((value) => asNumber(value) ?? 0);
}

function Classes(props: { answer: Answer; place: Place; axis: Axis; ooms: Table | undefined }) {
  const { answer, place, axis } = props;
  const chart = useMemo(() => {
    const classes = seriesOf(answer, place, (metric) => BY_CLASS.test(metric));
    const reserved = seriesOf(answer, place, (metric) => metric === "memory").find((one) => one.target?.startsWith("reserved"));
    if (classes.length === 0) return null;
    const points = along(classes[0]!, axis);
    const around = reserved ? along(reserved, axis) : [];
    const start = Math.min(points[0]!, around[0] ?? points[0]!);
    const length = Math.max(1, points[points.length - 1]! - start, (around[around.length - 1] ?? start) - start);
    const layers: Layer[] = classes.map((one, i) => ({
      name: one.target ?? "",
      color: colorOf(one.target ?? "", i),
      v: one.v.map((value) => value ?? 0),
    }));
    const moments: Moment[] = rowsOf(props.ooms, place).map((row) => ({
      x: (asNumber(cell(props.ooms!, row, axis === "time" ? "t_ns" : "event")) ?? start) - start,
      label: "memory ran out",
    }));
    const outline = reserved && { name: "reserved", x: around.map((x) => x - start), v: reserved.v };
    return { layers, x: points.map((x) => x - start), length, moments, outline, start };
  }, [answer, place, axis]);
  if (chart === null) return <p class="empty">No events were recorded: only the end is known.</p>;
  const shownX = (x: number) => (axis === "time" ? formatNumber(Math.round(x), "ns") : grouped(Math.max(0, Math.round(x + chart.start))));
  return (
    <>
      <StackChart label={`Memory by class over ${axis}`} {...chart} shownX={shownX} unit="bytes" />
      {chart.moments.length > 0 && <p class="soft">Dashed: memory ran out.</p>}
    </>
  );
}

function OverTime(props: { answer: Answer; place: Place; ooms: Table | undefined }) {
  const { answer, place, ooms } = props;
  const timed = seriesOf(answer, place, (metric) => BY_CLASS.test(metric)).some((one) => asNumber(one.t_ns[0]) !== 0);
  const tab = (axis: Axis, label: string) => ({
    name: axis,
    label,
    view: () => <Classes answer={answer} place={place} axis={axis} ooms={ooms} />,
  });
  const tabs = [...(timed ? [tab("time", "over time")] : []), tab("events", "by event")];
  return <Tabs name="snapshot.axis" label="time or events" tabs={tabs} />;
}

function Peak(props: { report: Report; place: Place }) {
  const classes = table(props.report, "snapshot", "peak_classes");
  const stacks = table(props.report, "snapshot", "peak_stacks");
  // A class has one color, that of the chart, of what holds it too.
  const drawn = seriesOf(props.report.answers.snapshot!, props.place, (metric) => BY_CLASS.test(metric)).map((one) => one.target ?? "");
  const order = [...new Set([...drawn, ...rowsOf(classes, props.place).map((row) => String(cell(classes!, row, "class")))])];
  const bars = (of: Table | undefined, name: string, classed: string) =>
    rowsOf(of, props.place).map((row) => ({
      name: String(cell(of!, row, name) ?? "unknown"),
      value: asNumber(cell(of!, row, "bytes")) ?? 0,
      share: asNumber(cell(of!, row, "share")),
      color: colorOf(String(cell(of!, row, classed) ?? "unknown"), Math.max(0, order.indexOf(String(cell(of!, row, classed))))),
      note: `${cell(of!, row, name) ?? "unknown"} (${cell(of!, row, classed) ?? "unknown"})`,
    }));
  return (
    <>
      <h3>At the peak, by what it is for</h3>
      <BarList label="classes at the peak" bars={bars(classes, "class", "class")} unit="bytes" most={12} />
      <h3>At the peak, by who allocated it</h3>
      <div class="wide-names">
        <BarList label="largest stacks at the peak" bars={bars(stacks, "where", "class")} unit="bytes" />
      </div>
    </>
  );
}

/** Where memory ran out in words, and the free memory of each moment that was looked at, in pieces. */
function Pieces(props: { report: Report; place: Place }) {
  const ooms = table(props.report, "snapshot", "ooms");
  const moments = table(props.report, "snapshot", "fragmentation");
  const rows = rowsOf(moments, props.place).filter((row) => cell(moments!, row, "reserved_bytes") !== null);
  if (rows.length === 0 && rowsOf(ooms, props.place).length === 0) return null;
  const number = (of: Table, row: Value[], name: string) => asNumber(cell(of, row, name));
  const bytes = (of: Table, row: Value[], name: string) => {
    const value = number(of, row, name);
    return value === null ? "unknown" : formatNumber(value, "bytes");
  };
  return (
    <>
      <h3>Free memory in pieces</h3>
      {rowsOf(ooms, props.place).slice(-MAX_MOMENTS).map((row) => (
        <p class="banner" data-oom={String(cell(ooms!, row, "event"))}>
          <b>Memory ran out ({String(cell(ooms!, row, "cause"))}).</b> Wanted {bytes(ooms!, row, "wanted_bytes")}; the largest free piece was{" "}
          {bytes(ooms!, row, "largest_run_bytes")} of {bytes(ooms!, row, "free_bytes")}
          {cell(ooms!, row, "where") !== null && <> — asked by {String(cell(ooms!, row, "where"))}</>}
          {cell(ooms!, row, "to_free_where") !== null && (
            <>
              . In the way: {bytes(ooms!, row, "to_free_bytes")} of {String(cell(ooms!, row, "to_free_where"))}
            </>
          )}
        </p>
      ))}
      {rows.slice(0, MAX_MOMENTS).map((row) => {
        const [reserved, free, largest] = ["reserved_bytes", "free_bytes", "largest_run_bytes"].map((name) => number(moments!, row, name) ?? 0);
        const name = String(cell(moments!, row, "moment"));
        return (
          <>
            <p class="soft">{name === "oom" ? `where memory ran out, event ${cell(moments!, row, "event")}` : `at the ${name}`}</p>
            <StackedBar
              label={`memory at ${name}`}
              unit="bytes"
              parts={[
                { name: "in blocks", value: reserved! - free! },
                { name: "largest free piece", value: largest! },
                { name: "other free pieces", value: free! - largest! },
              ]}
            />
          </>
        );
      })}
    </>
  );
}

function View(props: { report: Report }) {
  const answer = props.report.answers.snapshot!;
  const devices = table(props.report, "snapshot", "devices");
  const all = useMemo(() => (devices ? places(devices) : []), [devices]);
  const [chosen, choose] = useNumber("show.snapshot.which", all.length);
  const place = all[chosen];
  const middle = Object.keys(answer.tables).filter((name) => !FIRST.includes(name) && !LAST.includes(name));
  const timelines = useMemo(
    () => ({ ...answer, series: Object.fromEntries(Object.entries(answer.series).filter(([name]) => name.startsWith("timeline"))) }),
    [answer],
  );
  return (
    <>
      {all.length > 1 && (
        <p class="charts">
          Snapshot
          <select aria-label="of which snapshot" value={chosen} onChange={(event) => choose(Number(event.currentTarget.value))}>
            {all.map((one, i) => (
              <option value={i}>{`${one.snapshot}: rank ${one.rank ?? "unknown"}, ${one.device}`}</option>
            ))}
          </select>
        </p>
      )}
      {place && (
        <div key={chosen}>
          <OverTime answer={answer} place={place} ooms={table(props.report, "snapshot", "ooms")} />
          <Peak report={props.report} place={place} />
          <Pieces report={props.report} place={place} />
        </div>
      )}
      <Charts name="snapshot" answer={timelines} />
      <h3>Figures and tables</h3>
      <Figures scalars={answer.scalars} />
      <TabbedTables name="snapshot" answer={answer} tables={[...FIRST, ...middle, ...LAST]} first={8} />
      <Notes answer={answer} />
    </>
  );
}

export const snapshot: Panel = {
  id: "snapshot",
  label: "Memory snapshot",
  title: "What fills the memory of the devices?",
  shows: ["snapshot"],
  applies: (report) => report.answers.snapshot !== undefined && report.answers.snapshot.scalars.snapshot_count?.value !== null,
  view: View,
};
