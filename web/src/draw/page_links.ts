// Where the served page leads to from a table or a finding: its SQL, its moment on the timeline, another answer, what a
// change would be worth. The self-contained report has none of these places.
import { createContext } from "preact";
import type { Column, Value } from "../data/report";

/** A moment of a rank, on the clock of the rank's file; without a rank, of the only one. */
export interface Moment {
  rank: Value;
  start: Value; // ns
  duration: Value; // ns; null: not known
}

export interface PageLinks {
  asks?: (sql: string) => string;
  moment?: (moment: Moment) => string | null; // null: there is no telling where it is
  answer?: (name: string) => { address: string; label: string } | null; // null: the page does not show it
  whatIf?: (changes: string) => string;
}

export const PageLinks = createContext<PageLinks>({});

const DURATIONS = ["duration_ns", "dur_ns", "wall_ns", "idle_ns", "time_ns", "lifetime_ns", "host_ns"];

/** What tells the moment of a row; null: the table tells of none. Moments of its own clock (Unix time) are not of a file. */
export function momentOf(columns: Column[]): ((row: Value[]) => Moment | null) | null {
  const find = (fits: (name: string) => boolean) => columns.findIndex((column) => column.unit === "ns" && fits(column.name));
  const start = [(name: string) => name === "start_ns", (name: string) => name === "t_ns" || name.endsWith("_t_ns")].map(find).find((at) => at >= 0);
  if (start === undefined) return null;
  const rank = columns.findIndex((column) => column.name === "rank");
  const duration = columns[start]!.name === "start_ns" ? DURATIONS.map((name) => find((one) => one === name)).find((at) => at >= 0) : undefined;
  return (row) => {
    const value = row[start] ?? null;
    return value === null ? null : { rank: row[rank] ?? null, start: value, duration: duration === undefined ? null : (row[duration] ?? null) };
  };
}
