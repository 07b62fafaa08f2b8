// What a reader chose in a table: sort, filter, rows shown.
import type { Column } from "../data/report";
import { useKept } from "./page_state";

export interface Sort {
  column: number;
  descending: boolean;
}

export interface TableState {
  sort: Sort | null;
  filter: string;
  limit: number;
  setSort: (sort: Sort) => void;
  setFilter: (filter: string) => void;
  setLimit: (limit: number) => void;
}

export const LONGEST_FILTER = 500;
export const MOST_ROWS = 10_000; // of one table on the page; sort, filter and SQL reach the others

// A name that several columns have says nothing, their place does.
function nameOf(columns: Column[], at: number): string {
  const { name } = columns[at]!;
  return columns.filter((column) => column.name === name).length === 1 ? name : `#${at}`;
}

/** "-total_ns" and "name" as a sort; null for what is no column of the table. */
export function parseSort(text: string | undefined, columns: Column[]): Sort | null {
  const descending = text?.startsWith("-") === true;
  const wanted = descending ? text!.slice(1) : text;
  const column = columns.findIndex((_, at) => nameOf(columns, at) === wanted);
  return column < 0 ? null : { column, descending };
}

export function formatSort(sort: Sort, columns: Column[]): string {
  return `${sort.descending ? "-" : ""}${nameOf(columns, sort.column)}`;
}

export function parseLimit(text: string | undefined, first: number): number {
  const limit = /^\d{1,6}$/.test(text ?? "") ? Number(text) : first;
  return limit > first && limit <= MOST_ROWS ? limit : first;
}

export function useTableState(name: string, columns: Column[], first: number): TableState {
  const [params, keep] = useKept();
  const set = (what: string, value: string, replace: boolean) => keep(`${what}.${name}`, value, replace);
  const filter = params[`filter.${name}`] ?? "";
  return {
    sort: parseSort(params[`sort.${name}`], columns),
    filter: filter.length > LONGEST_FILTER ? "" : filter,
    limit: parseLimit(params[`rows.${name}`], first),
    setSort: (sort) => set("sort", formatSort(sort, columns), false),
    setFilter: (text) => set("filter", text.slice(0, LONGEST_FILTER), true), // what is longer would not be read again
    setLimit: (limit) => set("rows", limit > first ? String(Math.min(limit, MOST_ROWS)) : "", false),
  };
}

/**
 * The statement that gives the table `source`, in the order that the reader chose: unknown values last, as here. A name that
 * several columns have orders nothing in SQL.
 */
export function sqlOf(source: string, columns: Column[], sort: Sort | null): string {
  const quoted = (name: string) => `"${name.replace(/"/g, '""')}"`;
  const plain = /^[a-z_][a-z0-9_]*$/i.test(source) ? source : quoted(source);
  const named = sort !== null && nameOf(columns, sort.column) === columns[sort.column]!.name;
  const order = !named ? "" : ` ORDER BY ${quoted(columns[sort.column]!.name)}${sort.descending ? " DESC" : ""} NULLS LAST`;
  return `SELECT * FROM ${plain}${order}`;
}
