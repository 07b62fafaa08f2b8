// Charts of an answer's series: bands behind them, the choice of a rank, reading and looking closer; however many.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { noBrowser, pageFor, sample, startBrowser } from "./page.mjs";

const { bandsAt, closer, linePath, roomy } = await load("draw/strip.tsx");
const { chartsByRank, drawn } = await load("draw/charts.tsx");
const { categoryColor } = await load("panels/memory_state.tsx");
const SECOND = 1e9;
const START = 1_795_423_288n * BigInt(SECOND); // Unix ns: more digits than a double holds

const at = (seconds) => START + BigInt(Math.round(seconds * SECOND));
const series = (metric, target, ranks, v, rest = {}) => ({
  unit: "",
  suffix: "",
  ...rest,
  t_ns: v.map((_, i) => at(i)),
  v,
  metric,
  target,
  ranks,
});
const bands = (name, rank, rows) => ({
  name,
  rank,
  start_ns: rows.map(([start]) => at(start)),
  end_ns: rows.map(([, end]) => at(end)),
  label: rows.map(([, , label]) => label),
  share: rows.map(([, , , share]) => share ?? 1),
});

/** Two ranks of ten seconds: steps of 2 s, each forward and then backward. */
function machine() {
  const phases = [0, 2, 4, 6, 8].flatMap((t) => [[t, t + 1, "forward"], [t + 1, t + 2, "backward"]]);
  return {
    summary: "What did the machine do?",
    scalars: { n: { value: 5, unit: "count", meaning: "" } },
    tables: {},
    series: {
      a: series("cpu_time", "rank 0", [0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, null], { suffix: " cores" }),
      b: series("cpu_time", "rank 1", [1], [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, null], { suffix: " cores" }),
      c: series("received", "eth0", [0, 1], [2048, 2048, 2048, 2048, 2048, 4096, 0, 0, 0, 0, 0], { unit: "bytes", suffix: "/s" }),
      d: series("received", "eth1", [0, 1], [1024, 1024, 1024, 1024, 1024, 1024, 0, 0, 0, 0, 0], { unit: "bytes", suffix: "/s" }),
      e: series("oom_kills", "host", [0, 1], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], { unit: "count", suffix: "/s" }),
      f: series("rss", "pid 7", [], [1, 2], { unit: "bytes" }),
    },
    bands: [0, 1].flatMap((rank) => [
      bands("steps", rank, [0, 2, 4, 6, 8].map((t, i) => [t, t + 2, String(i)])),
      bands("phases", rank, phases),
    ]),
    findings: [],
    notes: [],
  };
}

test("series are grouped by the ranks that they tell about; what is of none comes last", () => {
  const groups = chartsByRank(machine());
  assert.deepEqual([...groups.keys()], [0, 1, null]);
  assert.deepEqual(groups.get(1).map((one) => one.target), ["rank 1", "eth0", "eth1", "host"]);
  assert.equal(chartsByRank({ series: { old: { unit: "", t_ns: [0], v: [1] } } }).size, 0);
});

test("a category of memory has the color over time that it has in the rings", () => {
  const lines = ["gradient", "activation", "optimizer state"].map((name) => series("memory", name, [0], [1, 2]));
  const colors = (colorOf) => drawn(lines, [], 0, colorOf).lanes[0].lines.map((line) => line.color);
  assert.deepEqual(colors(categoryColor), ["gradient", "activation", "optimizer state"].map(categoryColor));
  assert.notDeepEqual(colors(undefined), colors(categoryColor));
});

test("bands of one stretch of time are read together", () => {
  const row = [
    { start: 0, end: 5, label: "forward", share: 0.5 },
    { start: 0, end: 5, label: "backward", share: 0.25 },
    { start: 7, end: 9, label: "forward", share: 1 },
  ];
  const labels = (t) => bandsAt(row, t).map((band) => band.label);
  assert.deepEqual([labels(-1), labels(0), labels(5), labels(8), labels(9)], [[], ["forward", "backward"], [], ["forward"], []]);
  assert.deepEqual(bandsAt([], 3), []);
});

test("a line holds each value until the next and has a hole where it is unknown", () => {
  assert.equal(linePath({ t: [0, 5, 8, 9], v: [1, 2, null, 1] }, 2, 10), "M0.00 23.00H500.00V0.00H800.00M900.00 23.00");
});

test("looking closer stays within the strip", () => {
  assert.deepEqual(closer({ from: 0, to: 1 }, 0, 2), { from: 0, to: 0.5 });
  assert.deepEqual(closer({ from: 0.5, to: 1 }, 1, 0.25), { from: 0, to: 1 });
  assert.ok(closer({ from: 0.2, to: 0.2 }, 0.5, 1).to > 0.2);
});

test("the sum of a lane's lines is dark, and takes no color from its parts", () => {
  const line = (target) => ({ metric: "memory", target, unit: "bytes", t_ns: [0, 1], v: [1, 2], ranks: [0] });
  const colors = (series) => drawn(series, [], 0).lanes[0].lines.map((one) => one.color);
  const [sum, ...parts] = colors([line("all categories"), line("a"), line("b")]);
  assert.equal(sum, "var(--ink)");
  assert.deepEqual(parts, colors([line("a"), line("b")]));
});

test("labels find room, those of ten thousand steps too", () => {
  const steps = Array.from({ length: 10_000 }, (_, i) => ({ start: i, end: i + 1, label: String(i), share: 1 }));
  assert.equal(roomy(steps.slice(0, 5), 0, 5).length, 5);
  assert.ok(roomy(steps, 0, 10_000).length < 50);
  assert.deepEqual(roomy(steps, 5000, 2).map((one) => one.label), ["5000", "5001"]);
});

describe("the page", { skip: noBrowser }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());
  const show = async (answer, options) => {
    const report = { ...sample(), answers: { machine: answer } };
    const text = JSON.stringify(report, (_, value) => (typeof value === "bigint" ? `#${value}#` : value)).replace(/"#(\d+)#"/g, "$1");
    const shown = await browser.open(await pageFor(text), options);
    return { ...shown, panel: shown.page.locator('[data-panel="machine"]') };
  };
  const quiet = (shown) => {
    assert.deepEqual(shown.errors, []);
    assert.deepEqual(shown.requests(), []);
  };

  test("has a lane for each metric, with units, over steps and phases in the colors of the page", async () => {
    const shown = await show(machine());
    const { panel, page } = shown;
    assert.deepEqual(await panel.locator("[data-lane]").evaluateAll((all) => all.map((one) => one.dataset.lane)), ["cpu_time", "received"]);
    const text = await panel.textContent();
    for (const part of ["0 – 10 cores", "0 – 4.00 KiB/s", "eth1", "0 all the time: OOM kills"]) assert.ok(text.includes(part), part);
    assert.equal(await panel.locator(".behind [data-band]").count(), 2);
    const colors = (of) => panel.locator(of).first().evaluate((one) => getComputedStyle(one)[one.tagName === "I" ? "backgroundColor" : "fill"]);
    assert.equal(await colors('.behind [data-band="forward"]'), await colors('[data-part="forward"] i'));
    assert.deepEqual(await panel.locator(".numbers span").allTextContents(), ["0", "1", "2", "3", "4"]);
    assert.equal(await page.locator('[data-panel="timeline"]').count(), 0);
    quiet(shown);
  });

  test("is read by pointer and keys, looked closer at by dragging, and shows one rank at a time", async () => {
    const shown = await show(machine());
    const { panel, page } = shown;
    const plots = panel.locator(".lane-plots");
    await plots.scrollIntoViewIfNeeded();
    const box = await plots.boundingBox();
    const move = (share) => page.mouse.move(box.x + box.width * share, box.y + 40);
    await move(0.55);
    assert.match(await panel.locator(".read-out").textContent(), /^5\.50 s · step 2 · backward$/);
    const names = () => panel.locator(".lane-names").textContent();
    assert.match(await names(), /6 cores.*4\.00 KiB\/s · eth0.*1\.00 KiB\/s · eth1/);
    await move(0.2);
    await page.mouse.down();
    await move(0.4);
    await page.mouse.up();
    assert.match(await panel.locator(".axis").textContent(), /^2\.0\d? ?s.*4\.0\d? s$/);
    await panel.getByRole("button", { name: "whole time" }).click();
    assert.match(await panel.locator(".axis").textContent(), /^0 ns.*10\.0 s$/);
    await plots.focus();
    await plots.press("ArrowRight");
    assert.match(await panel.locator(".read-out").textContent(), /step 0 · forward$/);
    await plots.press("+");
    assert.equal(await panel.getByRole("button", { name: "whole time" }).count(), 1);
    await panel.locator("select").selectOption({ label: "rank 1" });
    assert.match(await names(), /0 – 3 cores/);
    await panel.locator("select").selectOption({ label: "pid 7" });
    assert.equal(await panel.locator(".banded").count(), 0);
    quiet(shown);
  });

  test("shares of several steps are stacked, and not drawn behind the curves", async () => {
    const answer = machine();
    answer.bands = [
      bands("steps", 0, [[0, 5, "0–99"], [5, 10, "100–199"]]),
      bands("phases", 0, [[0, 5, "forward", 0.5], [0, 5, "backward", 0.25], [5, 10, "forward", 0.5]]),
    ];
    const shown = await show(answer);
    assert.equal(await shown.panel.locator(".behind [data-band]").count(), 0);
    assert.equal(await shown.panel.locator('svg.row [data-band="backward"]').getAttribute("d"), "M0.00 0.500V0.250H500.00V0.500Z");
    assert.match(await shown.panel.textContent(), /too narrow to be told apart/);
    quiet(shown);
  });

  test("thousands of steps and 8 ranks of 30 metrics cost few elements; no window is too narrow", async () => {
    const answer = machine();
    const many = Array.from({ length: 3000 }, (_, i) => [i / 100, (i + 1) / 100, String(i)]);
    answer.series = {};
    answer.bands = [];
    for (let rank = 0; rank < 8; rank++) {
      answer.bands.push(bands("steps", rank, many), bands("phases", rank, many.map(([from, to]) => [from, to, "forward"])));
      for (let i = 0; i < 30; i++) answer.series[`${rank} ${i}`] = series(`metric_${i}`, `rank ${rank}`, [rank], Array.from({ length: 31 }, (_, t) => t % 7));
    }
    const shown = await show(answer, { dark: true });
    assert.equal(await shown.panel.locator("[data-lane]").count(), 30);
    assert.ok((await shown.panel.locator(".charts *").count()) < 500);
    for (const width of [1280, 700, 400]) {
      await shown.page.setViewportSize({ width, height: 800 });
      const wide = await shown.panel.locator(".charts").evaluate((one) => one.scrollWidth - one.clientWidth);
      assert.ok(wide <= 0, `at ${width}`);
    }
    quiet(shown);
  });

  test("series without bands, as of a process that is no rank, are drawn all the same", async () => {
    const { f } = machine().series;
    const shown = await show({ ...machine(), series: { f }, bands: undefined });
    assert.equal(await shown.panel.locator('[data-lane="rss"]').count(), 1);
    assert.equal(await shown.panel.locator("select").count(), 0);
    assert.match(await shown.panel.textContent(), /pid 7/);
    quiet(shown);
  });
});
