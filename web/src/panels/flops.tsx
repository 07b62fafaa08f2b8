// How much arithmetic the model takes and where: its modules as a tree, then operators, types, passes and steps.
import type { Report, Table, Value } from "../data/report";
import { asNumber, columnIndex, rowsByRank, table } from "../data/report";
import { Rest } from "../draw/answer";
import { seriesColor } from "../draw/color";
import type { Panel } from "../draw/panel";
import { Figures } from "../draw/parts";
import { RankChoice } from "../draw/rank";
import { DataTable } from "../draw/table";
import { Tree } from "../draw/tree";
import type { TreeNode } from "../draw/tree";
import { useMemo, useState } from "preact/hooks";

const PREVAILS = 0.6;

/** The first depth at which no module prevails: what is deeper has the color of its branch there. */
function branchDepth(from: Table, rows: Value[][]): number {
  const largest = new Map<number, number>();
  for (const row of rows) {
    const depth = asNumber(row[columnIndex(from, "depth")] ?? null) ?? 0;
    largest.set(depth, Math.max(largest.get(depth) ?? 0, asNumber(row[columnIndex(from, "share")] ?? null) ?? 0));
  }
  for (let depth = 1; largest.has(depth); depth++) if (largest.get(depth)! < PREVAILS) return depth;
  return 1;
}

/** Rows of flops.by_module as nodes, each branch in a color of its own. */
export function moduleNodes(from: Table, rows: Value[][]): TreeNode[] {
  const at = (row: Value[], name: string) => row[columnIndex(from, name)] ?? null;
  const nodes: TreeNode[] = [{ id: "/", parent: null, name: "all modules", own: 0, color: "var(--tint)" }];
  const colors = new Map<string, string>();
  const branch = branchDepth(from, rows);
  let branches = 0;
  const byDepth = [...rows].sort((a, b) => (asNumber(at(a, "depth")) ?? 0) - (asNumber(at(b, "depth")) ?? 0));
  for (const row of byDepth) {
    const path = at(row, "module");
    const parent = at(row, "parent");
    const type = at(row, "class");
    const id = String(path ?? "/outside");
    const depth = asNumber(at(row, "depth"));
    const color = depth === branch ? seriesColor(branches++) : (colors.get(String(parent)) ?? "var(--c-compute)");
    colors.set(id, color);
    nodes.push({
      id,
      parent: parent === null ? "/" : String(parent),
      name: path === null ? "in no module" : shortName(String(path), parent),
      about: path === null ? "in no module" : `${path}${type === null ? "" : ` (${type})`}`,
      own: asNumber(at(row, "own_flop")) ?? 0,
      color,
    });
  }
  return nodes;
}

/** The path within the module around it: "layers.0.attn" in "layers.0" is "attn". */
function shortName(path: string, parent: Value): string {
  const above = `${parent ?? ""}.`;
  return path.startsWith(above) ? path.slice(above.length) : path;
}

function Modules(props: { from: Table }) {
  const { from } = props;
  const groups = useMemo(() => rowsByRank(from), [from]);
  const ranks = [...groups.keys()];
  const [rank, choose] = useState<Value>(ranks[0] ?? null);
  const rows = groups.get(rank) ?? [];
  const nodes = useMemo(() => moduleNodes(from, rows), [from, rank]);
  return (
    <>
      <RankChoice ranks={ranks} rank={rank} onChoose={choose} />
      <Tree key={String(rank)} label="arithmetic by module" nodes={nodes} unit="FLOP" shape="icicle" />
      <DataTable name="flops.by_module" table={{ columns: from.columns, rows }} first={12} />
    </>
  );
}

function View(props: { report: Report }) {
  const answer = props.report.answers.flops!;
  const modules = answer.tables.by_module;
  const drawn = modules !== undefined && modules.rows.length > 0;
  return (
    <>
      <Figures scalars={answer.scalars} />
      {drawn && <Modules from={modules} />}
      <Rest name="flops" answer={{ ...answer, scalars: {} }} shown={{ tables: drawn ? ["by_module"] : [] }} />
    </>
  );
}

export const flops: Panel = {
  id: "flops",
  label: "FLOP",
  title: "How much of the machine's arithmetic is used, and where?",
  shows: ["flops"],
  applies: (report) => (table(report, "flops", "by_part")?.rows.length ?? 0) > 0,
  view: View,
};
