// State of the tables in the address of the served page, their copies as JSON, and the SQL that gives them.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { hash, noBrowser, pageFor, params, sample, startBrowser } from "./page.mjs";
import { startStub } from "./stub.mjs";

const column = (name, type = "integer") => ({ name, type, unit: "", meaning: "" });

test("a sort names a column of the table, or is none", async () => {
  const { parseSort, formatSort, parseLimit, sqlOf } = await load("draw/table_state.ts");
  const columns = [column("name", "text"), column("n"), column("a"), column("a")];
  for (const sort of columns.map((_, at) => ({ column: at, descending: at % 2 === 1 }))) assert.deepEqual(parseSort(formatSort(sort, columns), columns), sort);
  for (const text of [undefined, "", "-", "nope", "constructor", "#1", "#9", "x".repeat(1e6)]) assert.equal(parseSort(text, columns), null);
  for (const text of [undefined, "", "9", "-5", "1e5", "999999", "9".repeat(1000)]) assert.equal(parseLimit(text, 10), 10);
  assert.equal(parseLimit("510", 10), 510);
  assert.equal(sqlOf("idle_causes", columns, null), "SELECT * FROM idle_causes");
  assert.equal(sqlOf("idle_causes", columns, { column: 2, descending: true }), "SELECT * FROM idle_causes"); // which a?
  assert.equal(sqlOf("idle_causes", [column('a"b')], { column: 0, descending: true }), 'SELECT * FROM idle_causes ORDER BY "a""b" DESC NULLS LAST');
});

test("JSON: every digit, unknown values as null, columns of one name", async () => {
  const { json } = await load("draw/format.ts");
  const text = json([column("1"), column("a"), column("a")], [[1n, 2n ** 60n, null], ["\"", true, 1.5]]);
  assert.deepEqual(JSON.parse(text), [{ 1: 1, a: "1152921504606846976", "a:2": null }, { 1: '"', a: true, "a:2": 1.5 }]);
  assert.equal(json([column("a")], []), "[]\n");
});

test("commands of a sentence become places of the page, their options its lines", async () => {
  const { linesOf } = await load("draw/said.tsx");
  assert.equal(linesOf(" --scale 'kernel:gemm or x=0.5' --no-waits --ranks 64"), "scale kernel:gemm or x=0.5\nno-waits\nranks 64");
  assert.equal(linesOf(""), "");
});

describe("tables in a browser", { skip: noBrowser }, () => {
  let browser;
  let stub;
  const report = sample();
  const rows = Array.from({ length: 1200 }, (_, n) => [`op_${String(n).padStart(4, "0")}`, n, 0, 0]);
  report.answers.fresh = { summary: "New?", tables: { things: { columns: [column("name", "text"), column("n"), { ...column("device_ns"), unit: "ns" }, column("id")], rows } } };
  before(async () => {
    browser = await startBrowser();
    stub = await startStub({ report });
  });
  after(async () => {
    await browser?.close();
    await stub?.close();
  });
  const CLIPBOARD = () => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (copied) => void (window.copied = copied) } });
  const open = async (fragment) => {
    const page = await browser.context.newPage();
    await page.addInitScript(CLIPBOARD);
    await page.goto(stub.address + fragment);
    const box = page.locator('[data-table="fresh.things"]');
    await box.waitFor();
    const first = (wanted) => page.waitForFunction((name) => document.querySelector('[data-table="fresh.things"] tbody td')?.textContent === name, wanted);
    return { page, box, first };
  };

  test("sort, filter and rows go to the address; back and a fresh opening bring them", async () => {
    const { page, box, first } = await open("#/more?run=r1");
    await box.locator('th[data-column="n"] button').click();
    await first("op_1199");
    await box.locator(".more").click();
    await box.locator("tbody tr").nth(509).waitFor();
    assert.deepEqual(await params(page), { run: "r1", "sort.fresh.things": "-n", "rows.fresh.things": "510" });
    await box.locator("input[type=search]").pressSequentially("op_11");
    await first("op_1199");
    assert.equal((await params(page))["filter.fresh.things"], "op_11");
    const address = await hash(page);
    await page.goBack(); // one step for all that was typed and the rows
    await page.waitForFunction(() => document.querySelectorAll('[data-table="fresh.things"] tbody tr').length === 10);
    assert.deepEqual(await params(page), { run: "r1", "sort.fresh.things": "-n" });
    await page.goBack();
    await first("op_0000");
    await page.goForward();
    await first("op_1199");
    await page.close();
    const again = await open(address);
    await again.first("op_1199");
    assert.equal(await again.box.locator("input[type=search]").inputValue(), "op_11");
    assert.equal(await again.box.locator("tbody tr").count(), 100);
    await again.box.getByText("Copy JSON").click();
    const copied = JSON.parse(await again.page.evaluate(() => window.copied));
    assert.deepEqual([copied.length, copied[0]], [100, { name: "op_1199", n: 1199, device_ns: 0, id: 0 }]);
    await again.box.locator("a.sql").click();
    await again.page.waitForSelector("textarea");
    assert.equal(await again.page.locator("textarea").inputValue(), 'SELECT * FROM fresh_things ORDER BY "n" DESC NULLS LAST');
    await again.page.waitForSelector('[data-table="query"]');
    assert.equal(await again.page.locator("a.sql").count(), 0);
    await again.page.close();
  });

  test("what an address cannot mean is ignored", async () => {
    const { page, box, first } = await open(`#/more?run=r1&sort.fresh.things=-nope&rows.fresh.things=99999999&filter.fresh.things=${"x".repeat(5000)}`);
    await first("op_0000");
    assert.equal(await box.locator("tbody tr").count(), 10);
    await box.locator("input[type=search]").fill("y".repeat(600));
    await page.waitForFunction(() => document.querySelector('[data-table="fresh.things"] input[type=search]')?.value.length === 500);
    assert.equal(await box.locator("tbody tr").count(), 0);
    await page.close();
  });

  test("a filter that finds nothing says which words, and is taken back by a button", async () => {
    const { page, box } = await open("#/more?run=r1&filter.fresh.things=op_00+nix+neither");
    const said = box.locator(".empty");
    assert.match(await said.textContent(), /No row has “nix” nor “neither”\. The filter looks for each word in the columns of text/);
    await box.locator("input[type=search]").fill("op_0001 op_0002");
    await page.waitForFunction(() => document.querySelector('[data-table="fresh.things"] .empty')?.textContent.startsWith("Rows have “op_0001” and “op_0002”, none has all of them"));
    await said.locator("button").click();
    await box.locator("tbody tr").first().waitFor();
    assert.equal(await said.count(), 0);
    assert.deepEqual(await params(page), { run: "r1" });
    await page.close();
  });

  test("figures that are 0 in every row take no column, and are named beneath", async () => {
    const { page, box } = await open("#/more?run=r1");
    assert.equal(await box.locator('th[data-column="device_ns"]').count(), 0);
    assert.equal(await box.locator('th[data-column="id"]').count(), 1); // 0 is a name here, no figure
    assert.match(await box.locator("p.soft").textContent(), /^0 in every row: device\.$/);
    await page.close();
  });

  test("measure, rank and what is looked at closer stand in the address; what is not there is the first", async () => {
    const columns = ["rank", "module", "class", "depth", "parent", "own_ns", "share"].map((name) => ({ name, type: "text", unit: "", meaning: "" }));
    const rows = [0, 1].flatMap((rank) => [
      [rank, "Net", "Net", 0, null, 1, 1],
      [rank, "a", null, 1, "Net", 20, 0.5],
      [rank, "a.b", null, 2, "a", 20, 0.5],
    ]);
    const own = structuredClone(report);
    own.answers.modules = { summary: "", scalars: {}, tables: { tree: { columns, rows } } };
    own.answers.memory = { summary: "", scalars: {}, tables: { by_module: { columns: columns.map((one) => ({ ...one, name: one.name === "own_ns" ? "own_bytes" : one.name })), rows } } };
    const other = await startStub({ report: own });
    const page = await browser.context.newPage();
    await page.goto(`${other.address}#/modules?run=r1&show.modules=nonsense&rank.modules.tree=99&look.modules.tree=nobody`);
    const panel = page.locator('[data-panel="modules"]');
    await panel.locator('[data-tab="modules"][aria-pressed="true"]').waitFor();
    await panel.locator('[data-tab="memory"]').click();
    await panel.locator("select").selectOption("1");
    await panel.locator('.icicle [data-node="a"]').click();
    await page.waitForFunction(() => document.querySelector('[data-panel="modules"] [data-node="Net"]') === null);
    assert.deepEqual([(await params(page))["show.modules"], (await params(page))["rank.memory.by_module"], (await params(page))["look.memory.by_module"]], ["memory", "1", "a"]);
    await page.reload();
    await panel.locator('[data-tab="memory"][aria-pressed="true"]').waitFor();
    assert.equal(await panel.locator("select").inputValue(), "1");
    assert.equal(await panel.locator('.icicle [data-node="Net"]').count(), 0);
    await page.close();
    await other.close();
  });

  test("no two tables of a page have one name", async () => {
    const { page } = await open("#/more?run=r1");
    for (const link of await page.locator("nav.views a").all()) {
      await link.click();
      await page.waitForSelector(`nav.views a[aria-current="page"] >> text=${await link.textContent()}`);
      const names = await page.$$eval("[data-table]", (all) => all.map((one) => one.dataset.table));
      assert.equal(new Set(names).size, names.length, names.join(" "));
    }
    await page.close();
  });

  test("the report keeps it to itself", async () => {
    const { page } = await browser.open(await pageFor(report));
    const before = page.url();
    const box = page.locator('[data-table="fresh.things"]');
    await box.locator('th[data-column="n"] button').click();
    await page.waitForFunction(() => document.querySelector('[data-table="fresh.things"] tbody td')?.textContent === "op_1199");
    assert.equal(page.url(), before);
    assert.equal(await page.locator("a.sql").count(), 0);
    await page.close();
  });
});
