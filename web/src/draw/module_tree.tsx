// Modules of a rank as a tree of amounts: time, arithmetic or memory. Any table with the columns module, class, depth,
// parent and share has one.
import { useMemo } from "preact/hooks";
import type { Table, Unit, Value } from "../data/report";
import { asNumber, columnIndex, rowsByRank } from "../data/report";
import { seriesColor } from "./color";
import { RankChoice, useRank } from "./rank";
import { DataTable } from "./table";
import { Tree } from "./tree";
import type { TreeNode } from "./tree";

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

/** Rows as nodes that have what column `own` says, each branch in a color of its own. */
export function moduleNodes(from: Table, rows: Value[][], own: string): TreeNode[] {
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
    const color = path === null ? "var(--c-other)" : depth === branch ? seriesColor(branches++) : (colors.get(String(parent)) ?? "var(--c-compute)");
    colors.set(id, color);
    nodes.push({
      id,
      parent: parent === null ? "/" : String(parent),
      name: path === null ? "in no module" : shortName(String(path), parent),
      about: path === null ? "in no module" : `${path}${type === null ? "" : ` (${type})`}`,
      own: asNumber(at(row, own)) ?? 0,
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

/** `name` is that of the table on the page, `source` in SQL, `own` the column of what a module has itself. */
export function ModuleTree(props: { name: string; source: string; label: string; from: Table; own: string; unit: Unit }) {
  const { from, own } = props;
  const groups = useMemo(() => rowsByRank(from), [from]);
  const ranks = [...groups.keys()];
  const [rank, choose] = useRank(props.name, ranks);
  const [rows, device] = useMemo(() => ofOneDevice(from, groups.get(rank) ?? [], own), [from, groups, rank, own]);
  const nodes = useMemo(() => moduleNodes(from, rows, own), [from, rows, own]);
  const table = useMemo(() => ({ columns: from.columns, rows: named(from, rows) }), [from, rows]);
  return (
    <>
      <RankChoice ranks={ranks} rank={rank} onChoose={choose} />
      {device !== null && (
        <p class="soft">
          Of several devices the one that holds most: <bdi>{device}</bdi>.
        </p>
      )}
      <Tree key={String(rank)} name={props.name} label={props.label} nodes={nodes} unit={props.unit} shape="icicle" />
      <DataTable name={props.name} table={table} first={12} source={rows.length === from.rows.length ? props.source : undefined} />
    </>
  );
}

/** Here null is no lack of knowledge: what is in no module, and a module that no other holds. */
function named(from: Table, rows: Value[][]): Value[][] {
  const [module, parent] = [columnIndex(from, "module"), columnIndex(from, "parent")];
  return rows.map((row) => row.map((value, i) => (value !== null ? value : i === module ? "in no module" : i === parent ? "" : value)));
}

/** Rows of the device that has most, where there are several; its name then. */
function ofOneDevice(from: Table, rows: Value[][], own: string): [Value[][], string | null] {
  const [device, amount] = [columnIndex(from, "device"), columnIndex(from, own)];
  const sums = new Map<Value, number>();
  for (const row of device < 0 ? [] : rows) sums.set(row[device] ?? null, (sums.get(row[device] ?? null) ?? 0) + (asNumber(row[amount] ?? null) ?? 0));
  if (sums.size < 2) return [rows, null];
  const most = [...sums].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
  return [rows.filter((row) => (row[device] ?? null) === most), String(most)];
}
