// A value of a counter with its unit, which is as recorded: one that the page knows is scaled, and so is its rate.
import type { Unit } from "../data/report";
import { formatNumber } from "../draw/format";

const KNOWN = ["ns", "bytes", "count", "ratio", "GB/s", "FLOP", "FLOP/s"];

export function counterText(value: number, unit = ""): string {
  if (KNOWN.includes(unit)) return formatNumber(value, unit as Unit);
  const rate = /^(ns|bytes|count|FLOP)\/s$/.exec(unit)?.[1];
  if (rate !== undefined) return `${formatNumber(value, rate as Unit)}/s`;
  const text = formatNumber(value, "count");
  return unit === "" ? text : `${text} ${unit}`;
}
