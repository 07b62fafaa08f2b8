// The tree of amounts, as rings and as rows: where its parts lie, what is read out, walking and looking closer; and the
// panel that draws the state of memory with it.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { noBrowser, pageFor, sample, startBrowser } from "./page.mjs";

const { partsOf, place, readOut } = await load("draw/tree.tsx");
const { nodesOf } = await load("panels/memory_state.tsx");
const KIB = 1024;

const node = (id, parent, own, rest = {}) => ({ id, parent, name: id.split(".").pop(), own, color: "#123456", ...rest });
const small = () => [node("all", null, 0), node("a", "all", 10), node("a.x", "a", 20), node("a.y", "a", 10), node("b", "all", 60)];

test("a part is as wide as its node and those below; its own is what children leave", () => {
  const root = place(small());
  assert.equal(root.value, 100);
  const parts = Object.fromEntries(partsOf(root).map((part) => [part.at.data.node.id, part]));
  const width = (id) => parts[id].to - parts[id].from;
  assert.deepEqual(Object.keys(parts).sort(), ["a", "a.x", "a.y", "all", "b"]);
  for (const [id, wanted] of [["all", 1], ["a", 0.4], ["a.x", 0.2], ["a.y", 0.1], ["b", 0.6]]) assert.ok(Math.abs(width(id) - wanted) < 1e-9, id);
  assert.ok(parts["a.y"].to <= parts.a.to - 0.1 + 1e-9);
});

test("looking closer shows a node as the whole; levels and what is too narrow are left out", () => {
  const nodes = [...small(), node("dust", "all", 1e-6)];
  const root = place(nodes);
  assert.ok(partsOf(root).every((part) => part.at.data.node.id !== "dust"));
  const a = root.find((at) => at.data.node.id === "a");
  assert.deepEqual(partsOf(a).map((part) => [part.at.data.node.id, part.level]), [["a", 0], ["a.x", 1], ["a.y", 1]]);
  assert.deepEqual(partsOf(root, 1).map((part) => part.level).sort(), [0, 1, 1]);
  assert.equal(place([]), null);
});

test("a node whose parent is missing, or comes too late, belongs to the whole", () => {
  const root = place([node("all", null, 0), node("b.x", "b", 5), node("b", "all", 5), node("c", "nowhere", 5)]);
  assert.deepEqual(root.children.map((at) => at.data.node.id).sort(), ["b", "b.x", "c"]);
  assert.equal(root.value, 15);
});

test("what is read out has the amount, what is its own, and the share of all", () => {
  const root = place([node("all", null, 0), node("a", "all", KIB, { about: "a (Linear)" }), node("a.w", "a", 3 * KIB), node("b", "all", 4 * KIB)]);
  const at = (id) => root.find((one) => one.data.node.id === id);
  assert.equal(readOut(at("a"), root.value, "bytes"), "a (Linear): 4.00 KiB, of it 1.00 KiB its own; 50.0 % of all");
  assert.equal(readOut(at("b"), root.value, "bytes"), "b: 4.00 KiB; 50.0 % of all");
  assert.equal(readOut(root, root.value, "bytes"), "all: 8.00 KiB");
});

const COLUMNS = ["rank", "step", "micro_batch", "event", "category", "path", "own_bytes", "total_bytes", "share", "class", "parent", "depth"];
const TYPES = { own_bytes: "integer", total_bytes: "integer", rank: "integer", step: "integer", micro_batch: "integer", depth: "integer", share: "real" };
const tree = (ranks) => ({
  columns: COLUMNS.map((name) => ({ name, type: TYPES[name] ?? "text", unit: name.endsWith("_bytes") ? "bytes" : "", meaning: "" })),
  rows: ranks.flatMap((rank) => [
    [rank, 1, 0, "backward", "parameter", "(all)", 0, 400 * KIB, 0.4, "Net", "", 0],
    [rank, 1, 0, "backward", "parameter", "up", 0, 400 * KIB, 0.4, "Linear", "(all)", 1],
    [rank, 1, 0, "backward", "parameter", "up.weight", 400 * KIB, 400 * KIB, 0.4, "", "up", 2],
    [rank, 1, 0, "backward", "activation", "(all)", 100 * KIB, (600 + rank) * KIB, 0.6, "Net", "", 0],
    [rank, 1, 0, "backward", "activation", "up", (500 + rank) * KIB, (500 + rank) * KIB, 0.5, "Linear", "(all)", 1],
  ]),
});

function measured(ranks = [0, 1]) {
  const report = sample();
  const tables = { at_peak: tree(ranks), largest: tree(ranks), at_end: { ...tree([]), rows: [] } };
  report.answers = { memory_state: { summary: "What fills it?", scalars: {}, tables, series: {}, findings: [], notes: [] } };
  return report;
}

test("categories are branches of the whole; one category alone is the whole, its modules the branches", () => {
  const table = tree([0]);
  const all = nodesOf(table, table.rows, "all");
  assert.deepEqual(all.map((one) => one.parent), [null, "", "parameter/(all)", "parameter/up", "", "activation/(all)"]);
  assert.equal(place(all).value, 1000 * KIB);
  assert.equal(all[3].about, "parameter of up.weight");
  const one = nodesOf(table, table.rows.slice(0, 3), "parameters");
  assert.deepEqual(one.map((of) => [of.name, of.parent]), [["parameters", null], ["up", "parameter/(all)"], ["weight", "parameter/up"]]);
});

describe("the panel", { skip: noBrowser }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());
  const show = async (report) => {
    const shown = await browser.open(await pageFor(report));
    return { ...shown, panel: shown.page.locator('[data-panel="memory_state"]') };
  };

  /** Where a ring can be met: the middle of its box may lie in the hole. */
  const pointOn = (page, id) =>
    page.locator(`.sunburst path[data-node="${id}"]`).evaluate((path) => {
      path.scrollIntoView({ block: "center" });
      const box = path.getBoundingClientRect();
      for (let i = 1; i < 400; i++) {
        const [x, y] = [box.left + (box.width * (i % 20)) / 20, box.top + (box.height * Math.floor(i / 20)) / 20];
        if (document.elementFromPoint(x, y) === path) return [x, y];
      }
      throw new Error("it is nowhere to be seen");
    });

  test("draws rings and rows, reads out what is pointed at, looks closer and back", async () => {
    const { panel, page, errors, requests } = await show(measured());
    const read = panel.locator(".tree-read");
    assert.match(await panel.textContent(), /end of backward pass 0 of step 1/);
    assert.equal(await panel.locator(".sunburst path[data-node]").count(), 6);
    assert.match(await read.textContent(), /^all: 1,000.0 KiB/);
    await page.mouse.move(...(await pointOn(page, "activation/up")));
    assert.match(await read.textContent(), /^activation of up \(Linear\): 500.0 KiB; 50.0 % of all/);
    await page.mouse.click(...(await pointOn(page, "activation/(all)")));
    assert.deepEqual(await panel.locator(".sunburst [data-node]").evaluateAll((all) => all.map((one) => one.dataset.node)), ["activation/(all)", "activation/up"]);
    assert.match(await panel.locator(".tree-children").textContent(), /up500.0 KiB.*its own100.0 KiB/);
    await panel.locator(".tree-path button").click();
    assert.equal(await panel.locator(".sunburst [data-node]").count(), 6);
    await panel.locator('[data-shape="icicle"]').click();
    assert.equal(await panel.locator(".icicle [data-node]").count(), 6);
    assert.equal(await panel.locator(".sunburst").count(), 0);
    await panel.locator(".tree-drawing").focus();
    for (const key of ["ArrowDown", "ArrowRight", "Enter", "ArrowDown"]) await page.keyboard.press(key);
    assert.match(await read.textContent(), / of up/);
    await page.keyboard.press("Escape");
    assert.equal(await panel.locator(".icicle [data-node]").count(), 6);
    assert.deepEqual([errors, requests()], [[], []]);
  });

  test("one rank at a time, and a tab for each part", async () => {
    const { panel, page, errors } = await show(measured());
    await panel.locator("select").first().selectOption("1");
    await page.mouse.move(...(await pointOn(page, "activation/(all)")));
    assert.match(await panel.locator(".tree-read").textContent(), /601.0 KiB/);
    await panel.locator('[data-tab="activation"]').click();
    assert.match(await panel.locator(".sunburst .center").first().textContent(), /activations/);
    assert.equal(await panel.locator('[data-table="memory_state.activation"] tbody tr').count(), 2);
    assert.deepEqual(errors, []);
  });
});
