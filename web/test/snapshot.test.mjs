// The panel of memory snapshots: classes stacked over time and over events, the peak, where memory ran out.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { noBrowser, pageFor, sample, startBrowser } from "./page.mjs";

const { layerPaths } = await load("draw/stack_chart.tsx");
const MIB = 1 << 20;
const START = 1_795_423_288_000_000_000n; // Unix ns: more digits than a double holds

const columns = (names) =>
  names.map((name) => {
    const texts = ["device", "class", "where", "cause", "moment", "to_free_where"];
    const type = texts.includes(name) ? "text" : name === "share" ? "real" : "integer";
    return { name, type, unit: name.endsWith("bytes") ? "bytes" : "", meaning: "" };
  });
const table = (names, rows) => ({ columns: columns(names), rows });
const series = (metric, target, v, rank) => ({
  unit: "bytes",
  t_ns: v.map((_, i) => START + BigInt(i) * 1_000_000n),
  event: v.map((_, i) => i * 10 - 1),
  v,
  metric,
  target,
  ranks: [rank],
});

/** Two ranks; memory ran out on the second. */
function memory() {
  const classes = (number) => `memory by class, snapshot ${number} cuda:0`;
  return {
    summary: "What fills the memory?",
    scalars: { snapshot_count: { value: 2, unit: "count", meaning: "" }, peak_bytes: { value: 30 * MIB, unit: "bytes", meaning: "" } },
    tables: {
      devices: table(["snapshot", "rank", "device", "peak_bytes"], [[0, 0, "cuda:0", 30 * MIB], [1, 1, "cuda:0", 20 * MIB]]),
      peak_classes: table(
        ["snapshot", "rank", "device", "class", "bytes", "share"],
        [[0, 0, "cuda:0", "activation", 20 * MIB, 0.66], [0, 0, "cuda:0", "parameter", 10 * MIB, 0.33], [1, 1, "cuda:0", "unknown", 20 * MIB, 1]],
      ),
      peak_stacks: table(
        ["snapshot", "rank", "device", "where", "bytes", "share", "class"],
        [[0, 0, "cuda:0", "model.py:7 forward", 20 * MIB, 0.66, "activation"], [1, 1, "cuda:0", "other.py:9 load", 20 * MIB, 1, null]],
      ),
      ooms: table(
        ["snapshot", "rank", "device", "event", "t_ns", "cause", "wanted_bytes", "free_bytes", "largest_run_bytes", "where", "to_free_bytes", "to_free_where"],
        [[1, 1, "cuda:0", 15, START + 1_500_000n, "fragmented", 8 * MIB, 12 * MIB, 6 * MIB, "train.py:3 step", MIB, "cache.py:5 keep"]],
      ),
      fragmentation: table(
        ["snapshot", "rank", "device", "moment", "event", "reserved_bytes", "free_bytes", "largest_run_bytes"],
        [[0, 0, "cuda:0", "peak", 9, 32 * MIB, 2 * MIB, 2 * MIB], [1, 1, "cuda:0", "oom", 15, 32 * MIB, 12 * MIB, 6 * MIB]],
      ),
    },
    series: {
      "held_snapshot0_cuda:0": series("memory", "held cuda:0, snapshot 0", [0, 30 * MIB, 10 * MIB], 0),
      "reserved_snapshot0_cuda:0": series("memory", "reserved cuda:0, snapshot 0", [0, 32 * MIB, 32 * MIB], 0),
      "class0_snapshot0_cuda:0": series(classes(0), "activation", [0, 20 * MIB, 0], 0),
      "class1_snapshot0_cuda:0": series(classes(0), "parameter", [0, 10 * MIB, 10 * MIB], 0),
      "class0_snapshot1_cuda:0": series(classes(1), "unknown", [0, 20 * MIB, 20 * MIB], 1),
    },
    findings: [],
    notes: ["a note about memory"],
  };
}

test("layers lie one on the other, and a value holds until the next point", () => {
  const layers = [{ name: "a", color: "", v: [1, 3] }, { name: "b", color: "", v: [1, 0] }];
  assert.deepEqual(layerPaths(layers, [0, 5], 10, 4), [
    "M0.0 165.0H500.0V55.0H1000.0V220.0H500.0V220.0H0.0Z",
    "M0.0 110.0H500.0V55.0H1000.0V55.0H500.0V165.0H0.0Z",
  ]);
});

describe("the panel of memory snapshots", { skip: noBrowser }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());

  const show = async (answer) => {
    const report = sample();
    report.answers.snapshot = answer;
    const shown = await browser.open(await pageFor(JSON.stringify(report, (_, value) => (typeof value === "bigint" ? `@${value}@` : value)).replace(/"@(\d+)@"/g, "$1")));
    return { ...shown, panel: shown.page.locator('[data-panel="snapshot"]') };
  };
  const layers = (panel) => panel.locator("[data-layer]").evaluateAll((all) => all.map((one) => one.dataset.layer));

  test("draws the classes of one device at a time, over time and over events", async () => {
    const { panel, errors } = await show(memory());
    assert.deepEqual(await layers(panel), ["activation", "parameter"]);
    assert.equal(await panel.locator(".stack .scale span").first().textContent(), "32.0 MiB");
    assert.equal(await panel.locator(".stack .axis span").last().textContent(), "2.00 ms");
    const plot = panel.locator(".stack .plot");
    const box = await plot.boundingBox();
    await plot.hover({ position: { x: box.width * 0.75, y: 50 } });
    assert.equal(await panel.locator('.stack [data-part="activation"] b').textContent(), " 20.0 MiB");
    assert.equal(await panel.locator('.stack [data-part="reserved"] b').textContent(), " 32.0 MiB");
    await panel.locator('[data-tab="events"]').click();
    assert.equal(await panel.locator(".stack .axis span").last().textContent(), "19");
    assert.equal(await panel.locator(".banner").count(), 0);
    assert.ok(await panel.locator('[data-bar="model.py:7 forward"]').isVisible());
    assert.match(await panel.textContent(), /a note about memory/);
    assert.deepEqual(errors, []);
  });

  test("a class has one color in the chart and at the peak, whatever the order there", async () => {
    const answer = memory();
    answer.series["class0_snapshot0_cuda:0"].target = "compiled: a";
    answer.series["class1_snapshot0_cuda:0"].target = "compiled: b";
    answer.tables.peak_classes.rows = [[0, 0, "cuda:0", "compiled: b", 20 * MIB, 0.66], [0, 0, "cuda:0", "compiled: a", 10 * MIB, 0.33]];
    const { panel, errors } = await show(answer);
    for (const name of ["compiled: a", "compiled: b"]) {
      const drawn = await panel.locator(`[data-layer="${name}"]`).evaluate((one) => getComputedStyle(one).fill);
      assert.equal(await panel.locator(`[data-bar="${name}"] .track span`).evaluate((one) => getComputedStyle(one).backgroundColor), drawn, name);
    }
    assert.deepEqual(errors, []);
  });

  test("says where memory ran out, why, and who stands in the way", async () => {
    const { panel, errors } = await show(memory());
    await panel.locator("select").selectOption("1");
    assert.deepEqual(await layers(panel), ["unknown"]);
    assert.equal(await panel.locator(".stack .moment").count(), 1);
    const text = await panel.locator('[data-oom="15"]').textContent();
    for (const part of ["fragmented", "Wanted 8.00 MiB", "6.00 MiB of 12.0 MiB", "train.py:3 step", "1.00 MiB of cache.py:5 keep"]) {
      assert.ok(text.includes(part), `${part}: ${text}`);
    }
    assert.match(await panel.locator('.stacked [data-part="other free pieces"]').textContent(), /6\.00 MiB/);
    assert.deepEqual(errors, []);
  });

  test("where segments and events contradict each other no pieces are drawn", async () => {
    const answer = memory();
    answer.tables.fragmentation.rows = [[0, 0, "cuda:0", "peak", 9, null, null, null], [0, 0, "cuda:0", "end", 19, 32 * MIB, 12 * MIB, 6 * MIB]];
    answer.tables.devices.rows[0][3] = null;
    delete answer.series["reserved_snapshot0_cuda:0"];
    const { panel, errors } = await show(answer);
    assert.equal(await panel.locator(".stacked").count(), 1);
    assert.match(await panel.textContent(), /at the end/);
    assert.equal(await panel.locator('.stack [data-part="reserved"]').count(), 0);
    assert.deepEqual(errors, []);
  });

  test("files without times or without events are drawn as far as they go", async () => {
    const answer = memory();
    for (const one of Object.values(answer.series)) one.t_ns = one.t_ns.map(() => 0);
    const untimed = await show(answer);
    assert.equal(await untimed.panel.locator('[data-tab="time"]').count(), 0);
    assert.deepEqual(await layers(untimed.panel), ["activation", "parameter"]);
    answer.series = {};
    answer.tables.fragmentation.rows = [];
    const empty = await show(answer);
    assert.match(await empty.panel.textContent(), /No events were recorded/);
    assert.deepEqual([...untimed.errors, ...empty.errors], []);
  });
});
