// The field of ranks and steps: which cell is which, what is joined, and that one outlier leaves the rest to be seen.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { noBrowser, pageFor, sample, startBrowser } from "./page.mjs";

const { bunched, strengths } = await load("draw/heat_map.tsx");
const { fieldOf } = await load("panels/steps.tsx");
const column = (name, type = "integer", unit = "ns") => ({ name, type, unit, meaning: "" });
const COLUMNS = [column("rank", "integer", ""), column("step", "text", ""), column("number", "integer", ""), column("partial", "boolean", ""), column("start_ns"), column("wall_ns"), column("kernel_ns")];
const table = (rows) => ({ columns: COLUMNS, rows });

test("a field has a row for each rank and a column for each number; steps that are cut are empty", () => {
  const found = fieldOf(
    table([
      [0, "a", 7, false, 0, 10, 1],
      [0, "a", 9, true, 0, 20, 2],
      [3, "a", 8, false, 0, 30, 3],
    ]),
    5,
  );
  assert.deepEqual(found, {
    columns: ["7", "8", "9"],
    rows: [
      { label: "rank 0", values: [10, null, null] },
      { label: "rank 3", values: [null, 30, null] },
    ],
  });
});

test("bunches show their largest value, strengths leave an outlier out of the scale", () => {
  assert.deepEqual(bunched([1, 5, null, null, 2], 2), [5, null, 2]);
  assert.deepEqual(bunched([1, 2], 1), [1, 2]);
  const values = Array.from({ length: 100 }, (_, i) => 100 + i);
  const strength = strengths([{ label: "", values: [...values, 1e9] }]);
  assert.ok(strength(100) === 0 && strength(1e9) === 1 && Math.abs(strength(150) - 0.5) < 0.05);
  const alike = strengths([{ label: "", values: [1000, 1001, 1000] }]);
  assert.ok(alike(1001) < 0.02, "what differs by a thousandth looks alike");
  assert.equal(strengths([{ label: "", values: [null] }])(5), 0);
});

describe("in the page", { skip: noBrowser }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(async () => browser?.close());

  test("64 ranks are a field, with one chart below; the part to look at is a choice", async () => {
    const report = sample();
    const rows = [];
    for (let rank = 0; rank < 64; rank++) for (let step = 1; step <= 50; step++) rows.push([rank, "s", step, false, 0, rank === 5 ? 3e6 : 2e6, step]);
    report.answers.steps.tables.steps = table(rows);
    const { page, errors } = await browser.open(await pageFor(report));
    const panel = page.locator('[data-panel="steps"]');
    assert.equal(await panel.locator(".heat-cell").count(), 64 * 50);
    const of = (rank) => panel.locator(".heat-cell").nth(rank * 50);
    assert.ok(Number(await of(5).getAttribute("fill-opacity")) > 0.9 && Number(await of(4).getAttribute("fill-opacity")) < 0.1);
    assert.equal(await of(5).locator("title").textContent(), "rank 5, step 1: 3.00 ms");
    await panel.locator("select").first().selectOption({ label: "kernel" });
    await page.waitForFunction(() => document.querySelector(".heat-cell title")?.textContent === "rank 0, step 1: 1 ns");
    assert.deepEqual(errors, []);
  });
});
