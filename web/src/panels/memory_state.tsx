// What fills the memory of the model: all of it at the peak, and each category by module where it was largest.
import type { Answer, Report, Table, Value } from "../data/report";
import { asNumber, columnIndex, table } from "../data/report";
import { Rest } from "../draw/answer";
import { partColor, seriesColor } from "../draw/color";
import { words } from "../draw/format";
import type { Panel } from "../draw/panel";
import { Figures } from "../draw/parts";
import { RankChoice, useRank } from "../draw/rank";
import { DataTable } from "../draw/table";
import { Tabs } from "../draw/tabs";
import type { Tab } from "../draw/tabs";
import { Tree } from "../draw/tree";
import type { TreeNode } from "../draw/tree";
import { useMemo } from "preact/hooks";

const TREES = ["at_peak", "at_end", "largest"];
const PARTS: [string, string, string[]][] = [
  ["params", "Parameters", ["parameter", "buffer"]],
  ["grads", "Gradients", ["gradient"]],
  ["os", "Optimizer", ["master parameter", "optimizer state"]],
  ["activation", "Activations", ["activation", "input"]],
];

const COLORS: Record<string, string> = {
  parameter: "var(--c-compute)",
  buffer: "var(--c-set)",
  gradient: "var(--c-copy)",
  "master parameter": "var(--c-depend)",
  "optimizer state": "var(--c-sync)",
  activation: "var(--c-exposed)",
  input: "var(--c-data)",
};

export function categoryColor(category: string): string {
  return COLORS[category] ?? partColor(category);
}

/** Rows of a tree table as nodes. Several categories: each a branch; one: its modules have the colors. */
export function nodesOf(from: Table, rows: Value[][], whole: string): TreeNode[] {
  const at = (row: Value[], name: string) => row[columnIndex(from, name)] ?? null;
  const categories = [...new Set(rows.map((row) => String(at(row, "category") ?? "")))];
  const several = categories.length > 1;
  const nodes: TreeNode[] = several ? [{ id: "", parent: null, name: whole, own: 0, color: "var(--tint)" }] : [];
  const branch = new Map<string, string>(); // id → color
  let branches = 0;
  for (const row of rows) {
    const category = String(at(row, "category") ?? "");
    const path = String(at(row, "path") ?? "");
    const depth = asNumber(at(row, "depth")) ?? 0;
    const id = `${category}/${path}`;
    const parent = depth === 0 ? (several ? "" : null) : `${category}/${at(row, "parent") ?? ""}`;
    const inherited = parent === null ? undefined : branch.get(parent);
    let color = several ? categoryColor(category) : (inherited ?? categoryColor(category));
    if (!several && depth === 1) color = seriesColor(branches++);
    if (depth > 0) branch.set(id, color);
    const type = at(row, "class");
    const shown = several ? words(category) : whole;
    const name = depth === 0 ? shown : path.split(".").pop()!;
    const about = depth === 0 ? shown : `${several ? `${shown} of ` : ""}${path}${type ? ` (${type})` : ""}`;
    nodes.push({ id, parent, name, about, own: asNumber(at(row, "own_bytes")) ?? 0, color });
  }
  return nodes;
}

function chosen(from: Table | undefined, rank: Value, categories?: string[]): Value[][] {
  if (from === undefined) return [];
  const [rankAt, categoryAt] = [columnIndex(from, "rank"), columnIndex(from, "category")];
  return from.rows.filter((row) => row[rankAt] === rank && (categories === undefined || categories.includes(String(row[categoryAt]))));
}

function when(from: Table, row: Value[]): string {
  const at = (name: string) => row[columnIndex(from, name)] ?? null;
  const pass = at("micro_batch");
  const event = String(at("event") ?? "");
  const place = event === "step" ? "before or at the end of" : event === "begin" ? "before" : `before or at the end of ${event} pass${pass === null ? "" : ` ${pass}`} of`;
  return `${place} step ${at("step")}`;
}

function OneTree(props: { name: string; from: Table; rows: Value[][]; label: string; sentence: string }) {
  const { from, rows, label } = props;
  const nodes = useMemo(() => nodesOf(from, rows, label), [from, rows, label]);
  return (
    <>
      <p class="soft">{props.sentence}</p>
      <Tree name={`memory_state.${props.name}`} label={label} nodes={nodes} unit="bytes" />
      <DataTable name={`memory_state.${props.name}`} table={{ columns: from.columns, rows }} first={12} />
    </>
  );
}

function tabsOf(answer: Answer, rank: Value): Tab[] {
  const tabs: Tab[] = [];
  const add = (name: string, label: string, from: Table | undefined, categories: string[] | undefined, whole: string, say: (moment: string) => string) => {
    const rows = chosen(from, rank, categories);
    if (from === undefined || rows.length === 0) return;
    const sentence = say(when(from, rows[0]!));
    tabs.push({ name, label, view: () => <OneTree name={from === answer.tables.at_peak ? "at_peak" : name} from={from} rows={rows} label={whole} sentence={sentence} /> });
  };
  add("summary", "All at the peak", answer.tables.at_peak, undefined, "all", (moment) => `The moment with most memory: ${moment}.`);
  for (const [name, label, categories] of PARTS) {
    add(name, label, answer.tables.largest, categories, label.toLowerCase(), (moment) => `Where it was largest: ${moment}.`);
  }
  add("end", "All at the end of a step", answer.tables.at_end, undefined, "all", (moment) => `After the last step measured: ${moment}.`);
  return tabs;
}

function View(props: { report: Report }) {
  const answer = props.report.answers.memory_state!;
  const ranks = [...new Set(TREES.flatMap((name) => (answer.tables[name]?.rows ?? []).map((row) => row[0] ?? null)))];
  const [rank, choose] = useRank("memory_state", ranks);
  const tabs = useMemo(() => tabsOf(answer, rank), [answer, rank]);
  return (
    <>
      <RankChoice ranks={ranks} rank={rank} onChoose={choose} />
      {tabs.length > 0 && <Tabs name="memory_state" label="which part of memory" tabs={tabs} />}
      <Figures scalars={answer.scalars} />
      <Rest name="memory_state" answer={{ ...answer, scalars: {} }} shown={{ tables: TREES }} colorOf={categoryColor} />
    </>
  );
}

export const memoryState: Panel = {
  id: "memory_state",
  label: "Memory by module",
  title: "What fills the memory of the model?",
  shows: ["memory_state"],
  applies: (report) => ["at_peak", "largest"].some((name) => (table(report, "memory_state", name)?.rows.length ?? 0) > 0),
  view: View,
};
