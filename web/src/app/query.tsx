// SQL over the tables of a run: text, result as a table like all others, faults with what to do about them. The text that
// was run stands in the page's address.
import { useState } from "preact/hooks";
import type { Column, Table, Unit, Value } from "../data/report";
import { askQuery } from "../data/server";
import type { QueryColumn, QueryResult } from "../data/server";
import { useDraft } from "../draw/draft";
import { grouped } from "../draw/format";
import { DataTable } from "../draw/table";
import { FaultBox, Waiting, useAsked } from "./asking";
import { Editor } from "./editor";
import { navigate } from "./navigation";
import type { ViewProps } from "./own_views";

const EXAMPLES: [string, string][] = [
  ["tables", ".tables"],
  ["longest kernels", "select name, count(*) as calls, sum(dur_ns) as total_ns from kernels group by name order by total_ns desc limit 50"],
  ["operators by time", "select name, count(*) as calls, sum(dur_ns) as total_ns from ops group by name order by total_ns desc limit 50"],
  ["recipes", ".recipes"],
];

function typeOf(rows: Value[][], at: number): Column["type"] {
  let type: Column["type"] | null = null;
  for (const row of rows) {
    const value = row[at] ?? null;
    if (value === null) continue;
    const own = typeof value === "string" ? "text" : typeof value === "boolean" ? "boolean" : Number.isInteger(Number(value)) ? "integer" : "real";
    if (own === "text") return "text";
    type = type === null || own === "real" ? own : type;
  }
  return type ?? "text";
}

/** Units stand in the names of raw numbers. */
function unitOf(name: string): Unit {
  return /_ns$/.test(name) ? "ns" : /_bytes$/.test(name) ? "bytes" : "";
}

export function tableOf(result: QueryResult): Table {
  const columns = result.columns.map((column, at): Column => {
    const about: QueryColumn = typeof column === "string" ? { name: column } : column;
    const type = typeOf(result.rows, at);
    const unit = type === "text" ? "" : ((about.unit as Unit | undefined) ?? unitOf(about.name));
    return { name: about.name, type, unit, meaning: about.meaning ?? "" };
  });
  return { columns, rows: result.rows };
}

export function QueryPage(props: ViewProps) {
  const run = props.run.id;
  const sql = props.route.params.sql ?? "";
  const [text, setText] = useDraft(sql);
  const [again, setAgain] = useState(0);
  const asked = useAsked(sql === "" ? null : (signal) => askQuery(run, sql, signal).then((result) => ({ sql, result, again })), [
    run,
    sql,
    again,
  ]);
  const start = (wanted: string) => {
    const asks = wanted.trim() === "" ? "" : wanted; // nothing to ask: what was asked before goes with its result
    if (asks === sql) setAgain(again + 1);
    else navigate({ view: "query", params: { run, sql: asks } });
  };
  const busy = sql !== "" && asked.error === null && (asked.value?.sql !== sql || asked.value.again !== again);
  return (
    <main id="main" class="query">
      <h2>Ask anything</h2>
      <Editor label="SQL" rows={7} text={text} onText={setText} run="Run" onRun={start}>
        <span class="soft">Ctrl + Enter. It can only read. For a start:</span>
        {EXAMPLES.map(([name, example]) => (
          <button
            type="button"
            onClick={() => {
              setText(example);
              start(example);
            }}
          >
            {name}
          </button>
        ))}
      </Editor>
      {sql === "" && (
        <p class="empty" role="status">
          No statement was run. Write one above, or press one of the examples.
        </p>
      )}
      {busy && <Waiting what="The query runs" share={null} />}
      {asked.error !== null && <FaultBox error={asked.error} />}
      {asked.error === null && asked.value !== null && !busy && <Result key={`${sql}\n${again}`} result={asked.value.result} />}
    </main>
  );
}

function Result(props: { result: QueryResult }) {
  const { result } = props;
  return (
    <>
      {result.cut && (
        <p class="banner">
          The first {grouped(result.rows.length)} rows are here; there are more. Use “stepscope query” for all.
        </p>
      )}
      {result.rows.length === 0 ? <p class="empty">No rows.</p> : <DataTable name="query" table={tableOf(result)} first={50} allColumns />}
    </>
  );
}
