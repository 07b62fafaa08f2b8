// Tables, steps and trees of a hundred thousand: the document stays small, whatever the report holds. Elements are counted and
// not seconds, which belong to a machine; what the first picture took is told (diagnostic).
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { noBrowser, pageFor, startBrowser } from "./page.mjs";

const { highest } = await load("draw/bars.tsx");
const COUNT = 100_000;
const MOST_ELEMENTS = 30_000;

const column = (name, unit = "", type = unit === "" ? "text" : "integer") => ({ name, type, unit, meaning: "" });
const answer = (tables, more = {}) => ({ summary: "", scalars: {}, tables, series: {}, findings: [], notes: [], ...more });
const report = (answers) => ({ schema_version: 1, stepscope: { version: "t" }, input: { path: "", files: [] }, issues: [], failed: {}, answers });

function operators() {
  const rows = Array.from({ length: COUNT }, (_, i) => [`aten::op_${i}_${"x".repeat(60)}`, (i * 7919) % 1_000_003, i]);
  return report({ operators: answer({ by_name: { columns: [column("name"), column("total_ns", "ns"), column("calls", "count")], rows } }, { scalars: { n: { value: COUNT, unit: "count", meaning: "" } } }) });
}

function steps() {
  const columns = [column("rank", "", "integer"), column("step"), column("number", "", "integer"), column("partial", "", "boolean"), column("start_ns", "ns"), column("wall_ns", "ns"), column("kernel_ns", "ns"), column("other_ns", "ns")];
  const rows = Array.from({ length: COUNT }, (_, i) => [i % 64, `ProfilerStep#${i >> 6}`, i >> 6, false, (i >> 6) * 1e6, 1e6 + (i % 97), 8e5, 2e5 + (i % 97)]);
  return report({ steps: answer({ steps: { columns, rows } }) });
}

/** Ten children each, five deep; some weigh a hundred times as much. */
function modules() {
  const columns = [column("rank", "", "integer"), column("module"), column("class"), column("depth", "", "integer"), column("parent"), column("share", "ratio", "real"), column("own_ns", "ns")];
  const rows = [];
  const grow = (path, depth) => {
    if (rows.length >= COUNT || depth > 5) return;
    const parent = depth === 0 ? null : path.slice(0, path.lastIndexOf("."));
    rows.push([0, path, "Block", depth, parent, 0.001, rows.length % 13 === 0 ? 100_000 : 1_000]);
    for (let i = 0; i < 10; i++) grow(`${path}.${i}`, depth + 1);
  };
  grow("net", 0);
  return report({ modules: answer({ tree: { columns, rows } }) });
}

test("of neighbors that are too many the highest is kept", () => {
  const bars = [1, 5, 2, 9, 3].map((value, i) => ({ label: String(i), parts: [{ name: "a", value }] }));
  assert.deepEqual(highest(bars, 2).map((bar) => bar.label), ["1", "3", "4"]);
  assert.equal(highest(bars, 1), bars);
});

describe("a large report", { skip: noBrowser }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());

  const show = async (t, made) => {
    const html = await pageFor(made);
    const began = performance.now();
    const shown = await browser.open(html);
    await shown.page.waitForSelector("main [data-panel]");
    await shown.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const elements = await shown.page.evaluate(() => document.getElementsByTagName("*").length);
    t.diagnostic(`${Math.round(html.length / 1e6)} MB, first picture after ${Math.round(performance.now() - began)} ms, ${elements} elements`);
    assert.ok(elements < MOST_ELEMENTS, `${elements} elements`);
    return shown;
  };

  test("of a table the first rows are there, and more are shown up to a bound", async (t) => {
    const { page, errors } = await show(t, operators());
    const box = page.locator('[data-table="operators.by_name"]');
    await box.locator('th[data-column="total_ns"] button').click();
    assert.equal(await box.locator("tbody tr").count(), 15);
    await box.locator('input[type="search"]').fill("op_99999");
    assert.match(await box.locator(".count").textContent(), /1 of 100,000 rows/);
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("steps of many ranks are a field and bars of the longest", async (t) => {
    const { page, errors } = await show(t, steps());
    assert.ok((await page.locator(".heat rect").count()) <= 20_000);
    assert.ok((await page.locator(".upright g").count()) <= 500);
    assert.match(await page.locator(".upright .plot").textContent(), /of each 4 neighbors the longest/);
    assert.deepEqual(errors, []);
    await page.close();
  });

  for (const shape of ["icicle", "sunburst"]) {
    test(`a tree as ${shape} draws what can be seen, and pointing at a part draws nothing anew`, async (t) => {
      const { page, errors } = await show(t, modules());
      if (shape === "sunburst") await page.locator('[data-shape="sunburst"]').click();
      const parts = page.locator(`.${shape} [data-node]`);
      assert.ok((await parts.count()) < 5_000, `${await parts.count()} parts`);
      const changed = await page.evaluate(async (shape) => {
        let changes = 0;
        const drawing = document.querySelector(`.${shape}`);
        new MutationObserver((all) => void (changes += all.length)).observe(drawing, { subtree: true, childList: true, attributes: true });
        for (const node of [...drawing.querySelectorAll("[data-node]")].slice(1, 6)) {
          node.dispatchEvent(new MouseEvent("mouseenter"));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        }
        return changes;
      }, shape);
      assert.ok(changed > 0 && changed < 50, `${changed} changes`);
      assert.deepEqual(errors, []);
      await page.close();
    });
  }
});
