// The panel of modules: each as a tree whose parts are what each does itself.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { noBrowser, pageFor, sample, startBrowser } from "./page.mjs";

const { moduleNodes } = await load("draw/module_tree.tsx");
const { place } = await load("draw/tree.tsx");

const NAMES = ["rank", "module", "class", "depth", "parent", "parameters", "forward_flop", "own_flop"];
const UNITS = { parameters: "count", forward_flop: "FLOP", own_flop: "FLOP" };
const ROWS = [
  [0, "Net", "Net", 0, null, 30, 60, 0],
  [0, "layers", null, 1, "Net", 20, 50, 0],
  [0, "layers.0", "Linear", 2, "layers", 10, 20, 20],
  [0, "layers.1", "Linear", 2, "layers", 10, 30, 30],
  [0, "head", "Linear", 1, "Net", 10, 10, 10],
  [0, null, null, null, null, null, 5, 5],
];
const byModule = (rows = ROWS) => ({
  columns: NAMES.map((name) => ({ name, type: ["module", "class", "parent"].includes(name) ? "text" : "integer", unit: UNITS[name] ?? "", meaning: name })),
  rows,
});

test("modules are nodes below what holds them, with what they do themselves", () => {
  const nodes = moduleNodes(byModule(), ROWS, "own_flop");
  const by = Object.fromEntries(nodes.map((node) => [node.name, node]));
  assert.equal(by["0"].parent, "layers");
  assert.equal(by["0"].about, "layers.0 (Linear)");
  assert.equal(by["0"].color, by.layers.color);
  assert.notEqual(by.head.color, by.layers.color);
  assert.equal(by["in no module"].own, 5);
  const root = place(nodes);
  assert.equal(root.value, 65);
  assert.equal(root.find((at) => at.data.node.name === "layers").value, 50);
});

describe("in the page", { skip: noBrowser }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());

  test("the tree is drawn, a click looks closer, the rank is chosen", async () => {
    const report = sample();
    const parts = { columns: [{ name: "part", type: "text", unit: "", meaning: "" }], rows: [["forward"]] };
    const other = ROWS.map((row) => [1, ...row.slice(1)]);
    report.answers.flops = {
      summary: "How much?",
      scalars: { forward_flop: { value: 65, unit: "FLOP", meaning: "" } },
      tables: { by_part: parts, by_module: byModule([...ROWS, ...other]) },
      series: [],
      findings: [],
      notes: [],
    };
    const shown = await browser.open(await pageFor(report));
    const panel = shown.page.locator('[data-panel="modules"]');
    assert.equal(await panel.locator('.icicle [data-node="layers.1"]').count(), 1);
    await panel.locator('.icicle [data-node="layers"]').click();
    assert.equal(await panel.locator('.icicle [data-node="head"]').count(), 0);
    await panel.locator("select").selectOption("1");
    assert.equal(await panel.locator('.icicle [data-node="head"]').count(), 1);
    assert.deepEqual(shown.errors, []);
  });

  test("time, arithmetic and memory are each a tree; of several devices the one that holds most is drawn, and said", async () => {
    const report = sample();
    const renamed = (unit, own, rows = ROWS) => {
      const { columns } = byModule();
      return { columns: columns.map((column) => (column.name === "own_flop" ? { ...column, name: own, unit } : column)), rows };
    };
    const devices = renamed("bytes", "own_bytes", [...ROWS.map((row) => [...row, "cuda:0"]), ...ROWS.map((row) => [...row.slice(0, -1), row.at(-1) * 3, "cuda:1"])]);
    devices.columns.push({ name: "device", type: "text", unit: "", meaning: "" });
    const answer = (tables) => ({ summary: "", scalars: {}, tables, series: {}, findings: [], notes: [] });
    report.answers.modules = answer({ tree: renamed("ns", "own_ns") });
    report.answers.flops = answer({ by_module: byModule() });
    report.answers.memory = answer({ by_module: devices });
    const shown = await browser.open(await pageFor(report));
    const panel = shown.page.locator('[data-panel="modules"]');
    const read = async () => {
      await panel.locator('.icicle [data-node="layers"]').hover();
      return panel.textContent();
    };
    assert.match(await read(), /50 ns/);
    await panel.locator('[data-tab="flops"]').click();
    assert.match(await read(), /50 FLOP/);
    await panel.locator('[data-tab="memory"]').click();
    assert.match(await read(), /150 B/);
    assert.match(await panel.textContent(), /the one that holds most: cuda:1/);
    assert.deepEqual(shown.errors, []);
  });
});
