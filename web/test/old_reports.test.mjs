// The page shows a report of any older version whole, and says that it does not know one of a newer.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { load } from "./load.mjs";
import { here, noBrowser, pageFor, startBrowser } from "./page.mjs";

const { parseReport, SCHEMA_VERSION } = await load("data/load.ts");
const { formatValue } = await load("draw/format.ts");
const fixtures = join(here, "..", "..", "tests", "fixtures");
const versions = readdirSync(fixtures).filter((name) => existsSync(join(fixtures, name, "report.json")));
const textOf = (version) => readFileSync(join(fixtures, version, "report.json"), "utf8");

test("a report of every older version is read without a loss", () => {
  assert.ok(versions.includes("1"));
  for (const version of versions) assert.deepEqual(parseReport(textOf(version)), JSON.parse(textOf(version)));
});

describe("the page", { skip: noBrowser }, () => {
  let browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());
  const show = async (report) => browser.open(await pageFor(report));
  const alerts = (page) => page.locator("main > .banner").allTextContents();

  test("shows what an older report says", async () => {
    for (const version of versions) {
      const { page, errors } = await show(textOf(version));
      const text = await page.locator("main").textContent();
      const report = JSON.parse(textOf(version));
      for (const [name, answer] of Object.entries(report.answers)) {
        for (const [key, { value, unit }] of Object.entries(answer.scalars)) {
          assert.ok(text.includes(formatValue(value, unit)), `${name}.${key} of version ${version}`);
        }
      }
      for (const issue of report.issues) assert.ok(text.includes(issue.sentence), issue.code);
      assert.deepEqual(await alerts(page), []);
      assert.deepEqual(errors, []);
    }
  });

  test("says what it does not know of a newer report, and shows the rest", async () => {
    const report = JSON.parse(textOf(versions.at(-1)));
    report.schema_version = SCHEMA_VERSION + 1;
    report.answers.steps.scalars = ["of another shape"];
    report.of_tomorrow = { answers: 3 };
    const { page, errors } = await show(report);
    const [said, ...more] = await alerts(page);
    assert.match(said, new RegExp(`has schema_version ${SCHEMA_VERSION + 1}, the page knows ${SCHEMA_VERSION}: .* newer one\\.$`));
    assert.deepEqual(more, []);
    assert.ok((await page.locator("main").textContent()).includes(report.issues[0].sentence));
    assert.deepEqual(errors, []);
  });
});
