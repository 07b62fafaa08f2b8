// Any part of an answer that no panel of its own shows: figures, series, tables and notes as they come. A new analysis
// is on the page the day it exists.
import type { Answer, Report, Series } from "../data/report";
import { asNumber } from "../data/report";
import { seriesColor } from "../draw/color";
import { words } from "../draw/format";
import { Figures, Notes } from "../draw/parts";
import { Strip } from "../draw/strip";
import { DataTable } from "../draw/table";
import type { Panel } from "./panel";

export interface Shown {
  scalars?: string[];
  tables?: string[];
  series?: string[];
}

function without<T>(of: Record<string, T>, names: string[] | undefined): Record<string, T> {
  return Object.fromEntries(Object.entries(of).filter(([name]) => !names?.includes(name)));
}

export function SeriesStrip(props: { label: string; series: [string, Series][] }) {
  const drawn = props.series.filter(([, series]) => series.t_ns.length > 0);
  const times = drawn.map(([, series]) => series.t_ns.map((t) => asNumber(t) ?? 0));
  const start = Math.min(...times.map((t) => t[0]!));
  const length = Math.max(1, ...times.map((t) => lastOf(t) - start));
  if (drawn.length === 0) return null;
  const lanes = drawn.map(([name, series], i) => ({
    name,
    color: seriesColor(i),
    unit: series.unit,
    t: times[i]!.map((t) => t - start),
    v: series.v,
  }));
  return <Strip label={props.label} lanes={lanes} marks={[]} length={length} />;
}

// A value holds until the next point; the last one as long as the one before it.
function lastOf(t: number[]): number {
  const last = t[t.length - 1]!;
  return t.length > 1 ? last + (last - t[t.length - 2]!) : last;
}

/** Everything of `answer` but what the caller has drawn already. */
export function Rest(props: { name: string; answer: Answer; shown?: Shown }) {
  const { name, answer, shown } = props;
  return (
    <>
      <Figures scalars={without(answer.scalars, shown?.scalars)} />
      <SeriesStrip label={words(name)} series={Object.entries(without(answer.series, shown?.series))} />
      {Object.entries(without(answer.tables, shown?.tables)).map(([part, table]) => (
        <>
          <h3>{words(part)}</h3>
          {table.rows.length > 0 ? <DataTable name={`${name}.${part}`} table={table} /> : <p class="empty">No rows.</p>}
        </>
      ))}
      <Notes answer={answer} />
    </>
  );
}

export function genericPanel(name: string, answer: Answer): Panel {
  return {
    id: name,
    title: answer.summary || words(name),
    shows: [name],
    applies: () => true,
    view: ({ report }: { report: Report }) => <Rest name={name} answer={report.answers[name] ?? answer} />,
  };
}
