// The report's JSON as docs/report-json.md specifies it. Every member that may be unknown is null; members that this
// page does not know are ignored.

/** Integers beyond 2^53 arrive as bigint, so that no digit is lost on the way to a copied CSV. */
export type Value = number | bigint | string | boolean | null;
export type Unit = "" | "ns" | "bytes" | "count" | "ratio" | "GB/s" | "Unix ns" | "FLOP" | "FLOP/s";

export interface Scalar {
  value: Value;
  unit: Unit;
  meaning: string;
  label?: string; // what readers see in place of its name
}

export interface Column {
  name: string;
  type: "integer" | "real" | "text" | "boolean";
  unit: Unit;
  meaning: string;
  label?: string; // what readers see in place of its name
}

export interface Table {
  columns: Column[];
  rows: Value[][];
}

export interface Series {
  unit: Unit;
  t_ns: (number | bigint)[];
  v: (number | null)[];
  event?: (number | bigint)[]; // number of the event at each point, where points are events
  // Of a series that is drawn in a chart with others of its answer.
  metric?: string; // the chart
  target?: string; // the line in it
  suffix?: string; // behind its numbers: "/s", " cores"
  ranks?: number[]; // that it tells about
}

/** What a rank did meanwhile, to be drawn behind the series of the answer: stretches of time, each column as long. */
export interface Bands {
  name: string;
  rank: number;
  start_ns: (number | bigint)[];
  end_ns: (number | bigint)[];
  label: string[];
  share: number[]; // of the stretch; below 1 where several bands have the same one
}

export interface Place {
  rank?: number | null;
  phase?: string | null;
  module?: string | null;
  op?: string | null;
  function?: string | null;
  file?: string | null;
  line?: number | null;
  t_ns?: number | bigint | null;
}

export interface Evidence {
  text: string;
  value: Value;
  unit: Unit;
  query?: string | null;
}

export interface Gain {
  speedup_low: number;
  speedup_high: number;
  step_ns?: number | null;
  binds?: string | null;
  how?: string | null;
}

export interface Finding {
  id: string;
  cause: string;
  sentence: string;
  where?: Place | null;
  evidence?: Evidence[] | null;
  gain?: Gain | null;
  gain_reason?: string | null;
  confidence?: string | null;
  confidence_reason?: string | null;
  next?: string | null;
}

export interface Answer {
  summary: string;
  scalars: Record<string, Scalar>;
  tables: Record<string, Table>;
  series: Record<string, Series>;
  bands?: Bands[];
  findings: Finding[];
  notes: string[];
}

export interface InputFile {
  path: string;
  format?: string | null;
  writer?: string | null;
  rank?: number | null;
  world_size?: number | null;
  rank_source?: string | null;
  compressed?: boolean | null;
  cached?: boolean | null;
  file_bytes?: number | null;
  text_bytes?: number | null;
  events?: number | null;
  slices?: number | null;
}

export interface Issue {
  code: string;
  severity: "info" | "repaired" | "lost";
  sentence: string;
  advice?: string | null;
  count: number;
  file?: string | null;
  offset?: number | bigint | null;
  event?: number | null;
}

export interface Report {
  schema_version: number;
  stepscope: { version: string; commit?: string | null };
  input: { path: string; files: InputFile[] };
  issues: Issue[];
  answers: Record<string, Answer>;
  /** Answer and number of each finding, those worth most first; a report of before has none. */
  findings_by_worth?: [string, number][];
  failed: Record<string, string>;
}

export function scalar(report: Report, answer: string, name: string): Scalar | undefined {
  return report.answers[answer]?.scalars[name];
}

export function table(report: Report, answer: string, name: string): Table | undefined {
  return report.answers[answer]?.tables[name];
}

export function asNumber(value: Value | undefined): number | null {
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" ? value : null;
}

export function columnIndex(of: Table, name: string): number {
  return of.columns.findIndex((column) => column.name === name);
}

/** The rows of each rank, in the order given; one group where the table has no ranks. */
export function rowsByRank(of: Table): Map<Value, Value[][]> {
  const rank = columnIndex(of, "rank");
  const groups = new Map<Value, Value[][]>();
  for (const row of of.rows) {
    const key = rank >= 0 ? (row[rank] ?? null) : null;
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}

/** No figure is known, no table has a row, nothing was found. */
export function knowsNothing(answer: Answer): boolean {
  const figures = Object.values(answer.scalars).every((scalar) => scalar.value === null);
  const tables = Object.values(answer.tables).every((table) => table.rows.length === 0);
  return figures && tables && answer.findings.length === 0 && Object.keys(answer.series).length === 0;
}

export function knowsSomething(answer: Answer | undefined): boolean {
  return answer !== undefined && !knowsNothing(answer);
}
