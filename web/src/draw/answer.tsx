// An answer, or what is left of it, as it comes: figures, charts, tables and notes. Series that are in no chart are in
// the timeline.
import type { Answer } from "../data/report";
import { Charts } from "./charts";
import type { LineColor } from "./charts";
import { words } from "./format";
import { Figures, Notes } from "./parts";
import { DataTable } from "./table";
import { Tabs } from "./tabs";

export interface Shown {
  scalars?: string[];
  tables?: string[];
}

function without<T>(of: Record<string, T>, names: string[] | undefined): Record<string, T> {
  return Object.fromEntries(Object.entries(of).filter(([name]) => !names?.includes(name)));
}

/** Everything of `answer` but what the caller has drawn already. */
export function Rest(props: { name: string; answer: Answer; shown?: Shown; colorOf?: LineColor }) {
  const { name, answer, shown } = props;
  const tables = Object.entries(without(answer.tables, shown?.tables));
  const empty = tables.filter(([, table]) => table.rows.length === 0).map(([part]) => words(part));
  return (
    <>
      <Figures scalars={without(answer.scalars, shown?.scalars)} />
      <Charts name={name} answer={answer} colorOf={props.colorOf} />
      {tables
        .filter(([, table]) => table.rows.length > 0)
        .map(([part, table]) => (
          <>
            <h3>{words(part)}</h3>
            <DataTable name={`${name}.${part}`} table={table} source={`${name}_${part}`} />
          </>
        ))}
      {empty.length > 0 && <p class="empty">Tables without rows: {empty.join(", ")}.</p>}
      <Notes answer={answer} />
    </>
  );
}

/** One tab per table that has rows; the rest of the answer beneath. */
export function TabbedTables(props: { name: string; answer: Answer; tables?: string[]; first?: number }) {
  const names = (props.tables ?? Object.keys(props.answer.tables)).filter((name) => (props.answer.tables[name]?.rows.length ?? 0) > 0);
  const tabs = names.map((name) => ({
    name,
    label: words(name),
    view: () => (
      <DataTable name={`${props.name}.${name}`} table={props.answer.tables[name]!} first={props.first ?? 15} source={`${props.name}_${name}`} />
    ),
  }));
  return tabs.length > 0 ? <Tabs name={props.name} label={`tables of ${props.name}`} tabs={tabs} /> : <p class="empty">Nothing of this was recorded.</p>;
}
