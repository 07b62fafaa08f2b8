// The page in a real browser: what the report says is on it, nothing else is asked for or runs.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { noBrowser, pageFor, sample, startBrowser } from "./page.mjs";

const { formatValue } = await load("draw/format.ts");
const HOSTILE = `</script><img src=x onerror=alert(1)><!--<script>alert(2)</script>`;

describe("the page", { skip: noBrowser }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());

  const show = async (report, options) => browser.open(await pageFor(report), options);
  const quiet = (shown) => {
    assert.deepEqual(shown.errors, []);
    assert.deepEqual(shown.requests(), []);
  };

  test("has a panel for every answer and no errors", async () => {
    const shown = await show(sample());
    const panels = await shown.page.$$eval("[data-panel]", (all) => all.map((one) => one.dataset.panel));
    for (const name of ["overview", "quality", "input"]) assert.ok(panels.includes(name), `${name} of ${panels}`);
    assert.equal(panels[0], "findings");
    assert.equal(await shown.page.$$eval(".failed", (all) => all.length), 0);
    const links = await shown.page.$$eval("nav a", (all) => all.map((one) => one.getAttribute("href").slice(1)));
    assert.deepEqual(links, panels);
    quiet(shown);
  });

  test("shows every figure of the JSON as it is", async () => {
    const report = sample();
    const { page } = await show(report);
    const text = await page.evaluate(() => document.getElementById("main").textContent);
    for (const answer of Object.values(report.answers)) {
      for (const [name, scalar] of Object.entries(answer.scalars)) {
        assert.ok(text.includes(formatValue(scalar.value, scalar.unit)), `${name}: ${scalar.value}`);
      }
      for (const finding of answer.findings) assert.ok(text.includes(finding.sentence));
      for (const note of answer.notes) assert.ok(text.includes(note));
    }
    for (const issue of report.issues) assert.ok(text.includes(issue.sentence));
  });

  test("an unknown figure says unknown and why", async () => {
    const report = sample();
    const gone = { value: null, unit: "ns", meaning: "because of rain" };
    report.answers.fresh = { summary: "New?", scalars: { gone, here: { value: 1, unit: "count", meaning: "" } } };
    const shown = await show(report);
    const figure = shown.page.locator('[data-panel="fresh"] [data-scalar="gone"]');
    assert.match(await figure.textContent(), /unknown.*because of rain/);
    quiet(shown);
  });

  test("answers that know nothing share a panel that says why", async () => {
    const report = sample();
    report.answers.fresh = {
      summary: "New?",
      scalars: { gone: { value: null, unit: "ns", meaning: "because of rain" } },
      tables: { things: { columns: [], rows: [] } },
    };
    const shown = await show(report);
    assert.equal(await shown.page.locator('[data-panel="fresh"]').count(), 0);
    assert.match(await shown.page.locator('[data-panel="absent"]').textContent(), /New\?.*because of rain/);
    quiet(shown);
  });

  test("what is worth a change stands first and open, most first, the rest as sentences", async () => {
    const report = sample();
    const said = (id, gain, more = {}) => ({ id, cause: id, sentence: `It is ${id}`, where: null, evidence: [{ text: `ground of ${id}`, value: 1, unit: "count" }], gain: gain && { speedup_low: gain, speedup_high: gain, step_ns: 8e6 }, ...more });
    const figure = (value, unit = "") => ({ value, unit, meaning: "" });
    const scalars = { step_ns: figure(8000000, "ns"), recording_ns: figure(1000000, "ns"), bound_by: figure("the main thread"), bound_share: figure(0.5, "ratio") };
    const offer = said("lower_precision", null, { gain_reason: "An offer and no fault: it changes what is computed." });
    report.answers = {
      idle: { ...report.answers.overview, summary: "?", scalars: {}, tables: {}, findings: [said("host_idle", 1.6, { cause: "small" }), said("much", 1.5)], notes: [] },
      advice: { summary: "?", scalars, tables: {}, findings: [said("middling", 1.2), said("small", 1.01), offer], notes: [] },
    };
    report.findings_by_worth = [["idle", 1], ["advice", 0], ["advice", 1], ["advice", 2], ["idle", 0]];
    const shown = await show(report);
    const panel = shown.page.locator('[data-panel="findings"]');
    const ids = (list) => panel.locator("ol.findings").nth(list).locator("> li").evaluateAll((all) => all.map((one) => one.dataset.finding));
    assert.deepEqual(await ids(0), ["much", "middling"]);
    assert.deepEqual(await ids(1), ["small", "lower_precision", "host_idle"]); // advice explains that cause
    assert.equal(await panel.locator("ol.findings").nth(1).getAttribute("start"), "3");
    const text = await panel.textContent();
    assert.match(text, /Step 8\.00 ms, bound by the main thread \(50\.0 % of what bounds it\)\. Recorded steps took 9\.00 ms/);
    assert.doesNotMatch(text, /Nothing was found/);
    assert.ok(await panel.getByText("ground of middling").isVisible());
    const folded = panel.getByText("ground of small");
    assert.ok(!(await folded.isVisible()));
    await panel.getByText("It is small").click();
    assert.ok(await folded.isVisible());
    await shown.page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.ok(await panel.getByText("ground of host_idle").isVisible());
    await shown.page.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.ok(!(await panel.getByText("ground of host_idle").isVisible()));
    assert.ok(await folded.isVisible()); // as the reader left it
    quiet(shown);

    report.answers.advice.findings = [said("small", 1.01), offer];
    report.answers.idle.findings = [];
    report.findings_by_worth = [["advice", 0], ["advice", 1]];
    report.issues.push({ code: "cut", severity: "lost", sentence: "The file ends inside an event", count: 1 });
    const nothing = await show(report);
    assert.match(await nothing.page.locator('[data-panel="findings"]').textContent(), /Nothing was found that is worth more than 3 % and leaves what is computed as it is\./);
    assert.deepEqual((await nothing.page.$$eval("[data-panel]", (all) => all.map((one) => one.dataset.panel))).slice(0, 2), ["warnings", "findings"]);
    quiet(nothing);

    report.answers.advice.findings = [];
    report.findings_by_worth = [];
    const bare = await show(report);
    assert.match(await bare.page.locator('[data-panel="findings"]').textContent(), /bound by the main thread.*Nothing was found that is worth more than 3 %\.$/);
    quiet(bare);
  });

  test("files that do not look like one job are told first", async () => {
    const report = sample();
    report.issues.push({ code: "unrelated_files", severity: "info", sentence: "Two jobs <b>", advice: "Open each", count: 2, file: "", offset: null, event: null });
    const shown = await show(report);
    assert.match(await shown.page.locator('[data-panel="warnings"] .banner').first().textContent(), /One job\? Two jobs <b>\. Open each/);
    quiet(shown);
  });

  test("whole steps that are longer than the time of device work say why", async () => {
    const report = sample();
    const figure = (value) => ({ value, unit: "ns", meaning: "" });
    report.answers.fresh = { summary: "New?", scalars: { span_ns: figure(129_000_000), steps_ns: figure(129_500_000) } };
    const { page } = await show(report);
    const table = page.locator('[data-panel="fresh"] table.windows');
    assert.match(await table.textContent(), /first to last device work.*129\.0 ms.*129\.5 ms.*begin on the host/s);
    report.answers.fresh.scalars.steps_ns = figure(100_000_000);
    const shorter = await show(report);
    assert.doesNotMatch(await shorter.page.locator('[data-panel="fresh"] table.windows').textContent(), /begin on the host/);
  });

  test("an answer without a panel of its own is drawn all the same", async () => {
    const report = sample();
    report.answers.fresh = {
      summary: "A question from tomorrow?",
      scalars: { speed: { value: 3.5, unit: "GB/s", meaning: "how fast" } },
      tables: { things: { columns: [{ name: "name", type: "text", unit: "", meaning: "who" }], rows: [["a row"]] } },
      series: { load: { unit: "ratio", t_ns: [0, 5, 9], v: [0.1, null, 0.9] } },
      notes: ["a note from tomorrow"],
    };
    const shown = await show(report);
    const panel = shown.page.locator('[data-panel="fresh"]');
    const text = await panel.textContent();
    for (const part of ["A question from tomorrow?", "3.50 GB/s", "a row", "a note from tomorrow"]) assert.ok(text.includes(part), part);
    assert.equal(await shown.page.locator('[data-panel="timeline"] [data-lane="load"] path').count(), 1);
    quiet(shown);
  });

  test("sorts by a heading, filters, and shows all rows on demand", async () => {
    const report = sample();
    const rows = Array.from({ length: 40 }, (_, i) => [`kernel_${String(i).padStart(2, "0")}`, (i * 7919) % 1009]);
    report.answers = {
      fresh: {
        tables: {
          t: {
            columns: [
              { name: "name", type: "text", unit: "", meaning: "" },
              { name: "time_ns", type: "integer", unit: "ns", meaning: "how long" },
            ],
            rows,
          },
        },
      },
    };
    const shown = await show(report);
    const box = shown.page.locator('[data-table="fresh.t"]');
    const names = () => box.locator("tbody tr td:first-child").allTextContents();
    assert.equal((await names()).length, 10);
    await box.locator('th[data-column="time_ns"] button').click();
    const bySize = [...rows].sort((a, b) => b[1] - a[1]).map((row) => row[0]);
    assert.deepEqual(await names(), bySize.slice(0, 10));
    assert.equal(await box.locator('th[data-column="time_ns"]').getAttribute("aria-sort"), "descending");
    await box.locator('th[data-column="time_ns"] button').press("Enter");
    assert.deepEqual(await names(), [...bySize].reverse().slice(0, 10));
    await box.getByRole("button", { name: /show/ }).click();
    assert.equal((await names()).length, 40);
    await box.locator('input[type="search"]').fill("KERNEL_07");
    assert.deepEqual(await names(), ["kernel_07"]);
    assert.match(await box.locator(".count").textContent(), /1 of 40 rows/);
    quiet(shown);
  });

  test("copies a table as CSV", async () => {
    const shown = await show(sample());
    await shown.page.evaluate(() => {
      window.copied = null;
      Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => void (window.copied = text) } });
    });
    await shown.page.locator('[data-table="operators.by_name"] button.copy').first().click();
    await shown.page.waitForFunction(() => window.copied !== null);
    const text = await shown.page.evaluate(() => window.copied);
    const table = sample().answers.operators.tables.by_name;
    const lines = text.trim().split("\n");
    assert.equal(lines[0], table.columns.map((column) => column.name).join(","));
    assert.equal(lines.length, table.rows.length + 1);
    assert.equal(lines[1], table.rows[0].join(","));
  });

  test("hostile names are text wherever they stand", async () => {
    const report = sample();
    const poison = (value, key) => {
      if (typeof value === "string" && !["type", "unit", "severity"].includes(key)) return HOSTILE;
      if (Array.isArray(value)) return value.map((item) => poison(item));
      if (value !== null && typeof value === "object") {
        return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, poison(item, name)]));
      }
      return value;
    };
    const hostile = poison(report);
    hostile.answers[HOSTILE] = { summary: "", notes: [HOSTILE], scalars: { [HOSTILE]: { value: HOSTILE, unit: "", meaning: "" } } };
    hostile.answers.__proto__x = null;
    const shown = await show(hostile);
    assert.equal(await shown.page.locator("img").count(), 0);
    assert.equal(await shown.page.locator("script").count(), 2);
    assert.ok((await shown.page.locator("main").textContent()).includes(HOSTILE));
    quiet(shown);
  });

  test("empty answers, no answers, no report", async () => {
    const report = sample();
    for (const name of Object.keys(report.answers)) {
      report.answers[name] = { summary: "", scalars: {}, tables: {}, series: {}, findings: [], notes: [] };
    }
    const bare = await show(report);
    assert.equal(await bare.page.locator(".failed").count(), 0);
    quiet(bare);
    const none = await show({ schema_version: 1, answers: {}, failed: { steps: "no step was found" }, issues: [], input: null });
    assert.ok((await none.page.locator("main").textContent()).includes("no step was found"));
    quiet(none);
    const broken = await show('{"schema_version": 1');
    assert.match(await broken.page.locator("#app").textContent(), /cannot be shown/);
    quiet(broken);
  });

  test("lost data is said at the top", async () => {
    const report = sample();
    report.issues.push({ code: "cut", severity: "lost", sentence: "The file ends inside an event", count: 1 });
    const { page } = await show(report);
    assert.ok((await page.locator('[data-panel="warnings"] .banner').textContent()).includes("The file ends inside an event"));
  });

  test("light and dark differ, the button switches, the page is not wider than the window", async () => {
    const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await show(sample());
    const dark = await show(sample(), { dark: true });
    const [lightColor, darkColor] = [await background(light.page), await background(dark.page)];
    assert.notEqual(lightColor, darkColor);
    await light.page.locator("button.theme").click();
    assert.equal(await background(light.page), darkColor);
    for (const width of [1280, 1024, 700]) {
      await light.page.setViewportSize({ width, height: 800 });
      assert.ok((await light.page.evaluate(() => document.documentElement.scrollWidth)) <= width, `at ${width}`);
    }
  });
});
