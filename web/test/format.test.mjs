// Numbers become text in one place; these are the rules that a reader relies on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { formatNumber, formatValue, columnFormat, columnFormats, csv, words } = await load("draw/format.ts");
const { sortedRows, filteredRows } = await load("draw/table.tsx");
const { parseReport } = await load("data/load.ts");
const { areaPath, valueAt } = await load("draw/strip.tsx");

test("each unit has its text", () => {
  assert.equal(formatNumber(840, "ns"), "840 ns");
  assert.equal(formatNumber(12_300, "ns"), "12.3 µs");
  assert.equal(formatNumber(113_412_000, "ns"), "113.4 ms");
  assert.equal(formatNumber(4_203_000_000, "ns"), "4.20 s");
  assert.equal(formatNumber(512, "bytes"), "512 B");
  assert.equal(formatNumber(71.2 * 2 ** 30, "bytes"), "71.2 GiB");
  assert.equal(formatNumber(14240, "count"), "14,240");
  assert.equal(formatNumber(0.963, "ratio"), "96.3 %");
  assert.equal(formatNumber(212, "GB/s"), "212 GB/s");
  assert.equal(formatNumber(44_020_000_000, "FLOP"), "44.0 GFLOP");
  assert.equal(formatNumber(950, "FLOP"), "950 FLOP");
  assert.equal(formatNumber(3.125e14, "FLOP/s"), "312.5 TFLOP/s");
  assert.equal(formatNumber(20_261_120, ""), "20261120");
});

test("unknown is never 0, and what is not 0 is never shown as 0", () => {
  assert.equal(formatValue(null, "ns"), "unknown");
  assert.equal(formatNumber(NaN, "ns"), "unknown");
  assert.equal(formatNumber(0, "ratio"), "0 %");
  assert.equal(formatNumber(0.0001, "ratio"), "<0.1 %");
  assert.equal(formatNumber(0.99999, "ratio"), ">99.9 %");
  assert.equal(formatNumber(1, "ratio"), "100 %");
});

test("a column has one scale", () => {
  const column = { name: "time", type: "integer", unit: "ns", meaning: "" };
  const format = columnFormat(column, [113_412_345, 20, 0, null]);
  assert.equal(format.suffix, "ms");
  assert.deepEqual([113_412_345, 20, 0, null].map(format.cell), ["113.412", "<0.001", "0.000", "unknown"]);
});

test("a point on a clock is shown from the first one, a length never", () => {
  const column = (name) => ({ name, type: "integer", unit: "ns", meaning: "" });
  const both = columnFormats([column("start_ns"), column("device_end_ns"), column("dur_ns")], [[5_000_000, 9_000_000, 4_000_000], [7_000_000, 12_000_000, 5_000_000]]);
  assert.deepEqual([5e6, 12e6, 4e6].map((value, i) => both[i].cell(value)), ["0.000", "7.000", "4.000"]); // one zero for all moments
  const clock = columnFormat(column("start_ns"), [1_760_000_000_000_000_000n, 1_760_000_000_002_500_000n]);
  assert.equal(clock.suffix, "ms from the first");
  assert.equal(clock.cell(1_760_000_000_002_500_000n), "2.500");
  for (const name of ["time_ns", "wall_ns", "idle_ns", "total_ns"]) {
    assert.deepEqual([columnFormat(column(name), [5e6, 9e6]).cell(5e6), columnFormat(column(name), [5e6, 9e6]).suffix], ["5.000", "ms"]);
  }
});

test("a moment is a time of day, with the day where there are several", () => {
  const column = { name: "start_ns", type: "integer", unit: "Unix ns", meaning: "" };
  const moment = 1_795_437_296_789_123_456n;
  assert.equal(formatNumber(moment, "Unix ns"), "2026-11-23 12:34:56.789 UTC");
  const hour = columnFormat(column, [moment, moment + 3_600_000_000_000n, null]);
  assert.deepEqual([hour.suffix, hour.cell(moment), hour.cell(null)], ["UTC", "12:34:56.789", "unknown"]);
  assert.equal(columnFormat(column, [moment, moment + 43_200_000_000_000n]).cell(moment), "2026-11-23 12:34:56.789");
});

test("CSV keeps numbers exact and spreadsheets harmless", () => {
  const columns = [
    { name: "name", type: "text", unit: "", meaning: "" },
    { name: "time_ns", type: "integer", unit: "ns", meaning: "" },
  ];
  const text = csv(columns, [['a,"b"', 9007199254740993n], ["=cmd()", -5], [null, null]]);
  assert.equal(text, `name,time_ns\n"a,""b""",9007199254740993\n'=cmd(),-5\n,\n`);
});

test("integers beyond 2^53 keep their digits where the browser tells them", () => {
  const report = parseReport('{"answers":{"a":{"scalars":{"t":{"value":1765432109876543211,"unit":"ns"}}}}}');
  const value = report.answers.a.scalars.t.value;
  assert.ok(value === 1765432109876543211n || value === Number("1765432109876543211"));
  assert.equal(formatNumber(1765432109876543211n, ""), "1765432109876543211");
});

test("a report without members is an empty report; something else is refused", () => {
  assert.deepEqual(Object.keys(parseReport("{}").answers), []);
  assert.throws(() => parseReport("[]"), /not a JSON object/);
});

test("rows sort with unknown last both ways and keep their order between equals", () => {
  const rows = [["b", 2], ["a", null], ["c", 10], ["d", 2]];
  assert.deepEqual(sortedRows(rows, { column: 1, descending: true }).map((row) => row[0]), ["c", "b", "d", "a"]);
  assert.deepEqual(sortedRows(rows, { column: 1, descending: false }).map((row) => row[0]), ["b", "d", "c", "a"]);
  assert.deepEqual(filteredRows(rows, "C").map((row) => row[0]), ["c"]);
  assert.equal(filteredRows(rows, "  ").length, 4);
});

test("a strip has holes where a value is unknown", () => {
  const lane = { name: "x", color: "", unit: "ratio", t: [0, 10, 20], v: [1, null, 0.5] };
  assert.equal(areaPath(lane, 30).split("M").length - 1, 2);
  assert.equal(valueAt(lane, 15), null);
  assert.equal(valueAt(lane, 25), 0.5);
  assert.equal(valueAt(lane, -1), null);
});

test("names read as words, acronyms as the field spells them", () => {
  assert.equal(words("exposed_communication_ns"), "exposed communication");
  assert.deepEqual(["causal_mfu", "bus_gb_per_s", "sm_efficiency", "cpu op", "constructor", "calls_per_step"].map(words), [
    "causal MFU", "bus GB/s", "SM efficiency", "CPU op", "constructor", "calls per step",
  ]);
  const rate = columnFormat({ name: "bus_gb_per_s", type: "real", unit: "GB/s", meaning: "" }, [212, 0.5, null]);
  assert.deepEqual([rate.suffix, ...[212, 0.5, null].map(rate.cell)], ["GB/s", "212", "0.5000", "unknown"]);
});
