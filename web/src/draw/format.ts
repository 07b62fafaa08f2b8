// The one place where the page turns numbers into text. Units come from the report's JSON. The rules are those of
// src/report/format.h, so that page and terminal show the same text. What is not 0 is never shown as 0, nor what is
// below 100 % as 100 %.
import type { Column, Unit, Value } from "../data/report";

export const UNKNOWN = "unknown";

interface Scale {
  factor: number;
  suffix: string;
  decimals: number; // in a table column
}

const TIME: Scale[] = [
  { factor: 1, suffix: "ns", decimals: 0 },
  { factor: 1e3, suffix: "µs", decimals: 1 },
  { factor: 1e6, suffix: "ms", decimals: 3 },
  { factor: 1e9, suffix: "s", decimals: 3 },
];
const BYTES: Scale[] = [
  { factor: 1, suffix: "B", decimals: 0 },
  { factor: 2 ** 10, suffix: "KiB", decimals: 1 },
  { factor: 2 ** 20, suffix: "MiB", decimals: 1 },
  { factor: 2 ** 30, suffix: "GiB", decimals: 2 },
  { factor: 2 ** 40, suffix: "TiB", decimals: 2 },
  { factor: 2 ** 50, suffix: "PiB", decimals: 2 },
];

const FLOP: Scale[] = ["", "k", "M", "G", "T", "P", "E"].map((prefix, power) => ({
  factor: 10 ** (3 * power),
  suffix: `${prefix}FLOP`,
  decimals: Math.min(power, 2),
}));
const FLOP_RATE: Scale[] = FLOP.map((scale) => ({ ...scale, suffix: `${scale.suffix}/s` }));
/** Units that are shown in a scale which fits the value. */
const SCALES: Partial<Record<Unit, Scale[]>> = { ns: TIME, bytes: BYTES, FLOP, "FLOP/s": FLOP_RATE };

/** The largest scale in which the value is at least 1 after rounding to three digits. */
function scaleFor(value: number, scales: Scale[]): Scale {
  const size = Math.abs(value) * 1.0005;
  let chosen = scales[0]!;
  for (const scale of scales) if (size >= scale.factor) chosen = scale;
  return chosen;
}

const groupings = new Map<number, Intl.NumberFormat>();

/** Digits grouped by three, with exactly `digits` decimals. */
export function grouped(value: number | bigint, digits = 0): string {
  let format = groupings.get(digits);
  if (format === undefined) {
    format = new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    groupings.set(digits, format);
  }
  return format.format(value);
}

function scaled(value: number, scales: Scale[]): string {
  const scale = scaleFor(value, scales);
  const shown = value / scale.factor;
  const decimals = scale.factor === 1 ? 0 : Math.abs(shown) < 9.995 ? 2 : 1;
  return `${grouped(shown, decimals)} ${scale.suffix}`;
}

/** Fixed decimals; what would round to 0 is shown as less than the smallest that can be shown. */
function fixed(value: number, decimals: number): string {
  const smallest = 10 ** -decimals;
  if (value !== 0 && Math.abs(value) < smallest / 2) return `${value < 0 ? ">-" : "<"}${grouped(smallest, decimals)}`;
  return grouped(value, decimals);
}

export function percent(ratio: number): string {
  if (ratio === 0) return "0 %";
  if (ratio === 1) return "100 %";
  if (ratio > 0.9995 && ratio < 1) return ">99.9 %";
  return `${fixed(ratio * 100, 1)} %`;
}

function real(value: number): string {
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 1000) return grouped(value);
  if (size < 1e-3) return String(Number(value.toPrecision(3)));
  return grouped(value, size >= 100 ? 1 : size >= 1 ? 2 : 4);
}

/** "2026-11-23 12:34:56.789"; beyond what a date can be: unknown. */
function moment(value: number | bigint): string {
  const date = new Date(Math.floor(Number(value) / 1e6));
  return Number.isNaN(date.getTime()) ? UNKNOWN : date.toISOString().slice(0, -1).replace("T", " ");
}

/** A time of a ruler whose lines are `step` ns apart: as many decimals as tell the lines apart. */
export function formatTick(time: number, step: number): string {
  const scale = scaleFor(time, TIME);
  const decimals = Math.min(12, Math.max(0, Math.round(Math.log10(scale.factor)) - Math.floor(Math.log10(step) + 1e-9)));
  return time === 0 ? "0" : `${grouped(time / scale.factor, decimals)} ${scale.suffix}`;
}

export function formatNumber(value: number | bigint, unit: Unit): string {
  const number = Number(value);
  if (!Number.isFinite(number)) return UNKNOWN;
  const scales = SCALES[unit];
  if (scales !== undefined) return scaled(number, scales);
  switch (unit) {
    case "Unix ns":
      return `${moment(value)} UTC`;
    case "count":
      return Number.isInteger(number) ? grouped(value) : real(number);
    case "ratio":
      return percent(number);
    case "GB/s":
      return `${real(number)} GB/s`;
    default:
      // Without a unit a whole number may be a rank, a line or an id: no separators.
      return typeof value === "bigint" || Number.isInteger(number) ? String(value) : real(number);
  }
}

export function formatValue(value: Value | undefined, unit: Unit): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : formatNumber(value, unit);
}

/** A point on a clock, not a length: shown from the first one of its table on, because the clock's own zero says nothing. */
export function isInstant(column: Column): boolean {
  return column.unit === "ns" && /(^|_)(start|end|t)_ns$/.test(column.name);
}

function earliest(values: Value[]): number {
  let first = Infinity;
  for (const value of values) {
    if (typeof value === "number" || typeof value === "bigint") first = Math.min(first, Number(value));
  }
  return first;
}

/** How one table column is shown: one scale for all its cells, so that they compare at a glance. */
export interface ColumnFormat {
  suffix: string; // for the heading; empty: none
  cell: (value: Value) => string;
}

/** Moments say the time of day, and the day where there are several. */
function momentsFormat(values: Value[]): ColumnFormat {
  const isNumber = (value: Value) => typeof value === "number" || typeof value === "bigint";
  const texts = values.filter(isNumber).map((value) => moment(value as number | bigint));
  const days = new Set(texts.map((text) => text.split(" ")[0]));
  const cell = (value: Value): string => {
    if (!isNumber(value)) return formatValue(value, "Unix ns");
    const text = moment(value as number | bigint);
    return days.size > 1 ? text : (text.split(" ")[1] ?? text);
  };
  return { suffix: "UTC", cell };
}

/** How each column of a table is shown: moments of several columns are of one clock, so they count from one zero. */
export function columnFormats(columns: Column[], rows: Value[][]): ColumnFormat[] {
  const values = columns.map((_, i) => rows.map((row) => row[i] ?? null));
  const moments = values.filter((_, i) => isInstant(columns[i]!));
  const zero = Math.min(...moments.map(earliest));
  return columns.map((column, i) => columnFormat(column, values[i]!, moments.length > 0 ? zero : undefined));
}

export function columnFormat(column: Column, values: Value[], zero = earliest(values)): ColumnFormat {
  if (column.unit === "Unix ns") return momentsFormat(values);
  if (column.unit === "GB/s") return { suffix: "GB/s", cell: (value) => formatValue(value, typeof value === "number" ? "count" : "") };
  const scales = SCALES[column.unit];
  if (scales === undefined) return { suffix: "", cell: (value) => formatValue(value, column.unit) };
  let largest = 0;
  for (const value of values) {
    if (typeof value === "number" || typeof value === "bigint") largest = Math.max(largest, Math.abs(Number(value)));
  }
  const from = isInstant(column) && Number.isFinite(zero) ? zero : 0;
  const scale = scaleFor(largest - from, scales);
  const cell = (value: Value): string =>
    typeof value === "number" || typeof value === "bigint"
      ? fixed((Number(value) - from) / scale.factor, scale.decimals)
      : formatValue(value, column.unit);
  return { suffix: from === 0 ? scale.suffix : `${scale.suffix} from the first`, cell };
}

// As the field writes them.
const SPELLED = new Map(Object.entries({
  cpu: "CPU", cuda: "CUDA", dtype: "dtype", flop: "FLOP", flops: "FLOPS", gb: "GB", gpu: "GPU", hfu: "HFU", io: "I/O", l2: "L2", macs: "MACs",
  mfu: "MFU", moe: "MoE", nccl: "NCCL", nvlink: "NVLink", oom: "OOM", ooms: "OOMs", pcie: "PCIe", python: "Python", rdma: "RDMA", rss: "RSS",
  sm: "SM", sql: "SQL", tcp: "TCP",
}));

/** snake_case names of the JSON as headings: "exposed_communication_ns" → "exposed communication", "bus_gb_per_s" → "bus GB/s". */
export function words(name: string): string {
  return name
    .replace(/_(ns|bytes|flop|flop_per_s)$|_ns(?=_per_)/, "")
    .split(/[_ ]/)
    .map((word) => SPELLED.get(word) ?? word)
    .join(" ")
    .replace(/ per s\b/g, "/s");
}

/** The name of a column, or of a scalar, for readers. */
export function shownName(name: string, of: { label?: string | undefined }): string {
  return of.label ?? words(name);
}

export function csv(columns: Column[], rows: Value[][]): string {
  const line = (cells: string[]) => cells.map(csvCell).join(",");
  const heading = line(columns.map((column) => column.name));
  return [heading, ...rows.map((row) => line(row.map((value) => (value === null ? "" : String(value)))))].join("\n") + "\n";
}

/** An array of objects, one a line, their members in the order of the columns. */
export function json(columns: Column[], rows: Value[][]): string {
  const seen = new Map<string, number>();
  const keys = columns.map(({ name }) => {
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return JSON.stringify(count === 1 ? name : `${name}:${count}`); // an object holds a name once
  });
  const object = (row: Value[]) => `  {${keys.map((key, i) => `${key}: ${jsonValue(row[i] ?? null)}`).join(", ")}}`;
  return rows.length === 0 ? "[]\n" : `[\n${rows.map(object).join(",\n")}\n]\n`;
}

// Most readers of JSON take numbers as doubles: an integer that one cannot hold is a text.
function jsonValue(value: Value): string {
  if (typeof value !== "bigint") return JSON.stringify(value);
  return Number.isSafeInteger(Number(value)) ? String(value) : `"${value}"`;
}

// A spreadsheet takes a text that begins with one of = + - @ as a formula; kernel names are not ours to trust.
function csvCell(text: string): string {
  const inert = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(inert) ? `"${inert.replace(/"/g, '""')}"` : inert;
}
