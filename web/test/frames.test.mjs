// The report where others show it: in a frame that may run scripts and nothing else (Jupyter's output, VS Code's webview), in a
// frame whose owner forbids scripts, in a mail that knows none. Needs a built CLI at build/stepscope or in STEPSCOPE_CLI.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { noBrowser, startBrowser } from "./page.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CLI = process.env.STEPSCOPE_CLI ?? join(root, "build", "stepscope");
const noCli = existsSync(CLI) ? noBrowser : `no command line at ${CLI}; run make build or set STEPSCOPE_CLI`;
const MOST_BYTES = 5 << 20;

const attribute = (text) => text.replace(/&/g, "&amp;").replace(/"/g, "&quot;");

describe("the report in frames", { skip: noCli }, () => {
  let browser;
  let folder;
  let file;
  let html;
  let report;
  before(async () => {
    browser = await startBrowser();
    folder = mkdtempSync(join(tmpdir(), "stepscope-frames-"));
    file = join(folder, "report.html");
    const trace = join(root, "tests", "traces", "tiny_train.json");
    execFileSync(CLI, ["report", trace, "--no-cache", "--html", file], { stdio: "ignore" });
    report = JSON.parse(execFileSync(CLI, ["report", trace, "--no-cache", "--json"], { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }));
    html = readFileSync(file, "utf8");
  });
  after(async () => {
    await browser?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const findings = () => Object.values(report.answers).flatMap((answer) => answer.findings);
  const parts = () => {
    const { columns, rows } = report.answers.overview.tables.breakdown;
    return rows.map((row) => row[columns.findIndex((column) => column.name === "part")]);
  };
  const framed = (sandbox, policy = "") =>
    `<!doctype html>${policy && `<meta http-equiv="Content-Security-Policy" content="${policy}">`}` +
    `<iframe width="1000" height="700" sandbox="${sandbox}" srcdoc="${attribute(html)}"></iframe>`;

  test("a usual run is a page of no more than 5 MB", () => {
    assert.ok(statSync(file).size <= MOST_BYTES, `${statSync(file).size} bytes`);
    assert.ok(findings().length > 0 && parts().length > 0); // what follows looks for them
  });

  test("is whole in a frame that may run scripts and nothing else", async () => {
    const { page, errors } = await browser.open(framed("allow-scripts"));
    const frame = page.frameLocator("iframe");
    await frame.locator('[data-panel="overview"]').waitFor();
    assert.equal(await frame.locator(".static").count(), 0);
    assert.equal(await frame.locator(".failed").count(), 0);
    const box = frame.locator('[data-panel="kernels"] [data-table]').first();
    await box.locator("thead button").first().click();
    assert.equal(await box.locator('th[aria-sort="ascending"], th[aria-sort="descending"]').count(), 1);
    await frame.locator('nav a[href="#quality"]').click();
    await page.waitForTimeout(100);
    const seen = await frame.locator("#quality").evaluate((one) => [document.documentElement.scrollTop, one.getBoundingClientRect().top, innerHeight]);
    assert.ok(seen[0] > 0 && seen[1] < seen[2], "the link leads to its panel");
    assert.equal(await frame.locator("button.theme").count(), 1);
    await frame.locator("button.theme").click();
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("says the same from a file", async () => {
    const { page, errors, requests } = await browser.open("", { file });
    await page.waitForSelector('[data-panel="overview"]');
    const text = await page.locator("main").textContent();
    for (const finding of findings()) assert.ok(text.includes(finding.sentence), finding.sentence);
    assert.deepEqual(errors, []);
    assert.deepEqual(requests(), []);
    await page.close();
  });

  const saysItPlainly = async (of) => {
    await of.locator("main.static").waitFor();
    const text = await of.locator("main.static").textContent();
    for (const finding of findings()) assert.ok(text.includes(finding.sentence), finding.sentence);
    for (const part of parts()) assert.ok((await of.locator("table td").allTextContents()).includes(part), part);
    assert.match(text, /open it in a browser/);
  };

  test("says what was found and where the time goes in a frame without scripts", async () => {
    const { page } = await browser.open(framed(""));
    await saysItPlainly(page.frameLocator("iframe"));
    await page.close();
  });

  test("and where a policy of the owner refuses the script, which <noscript> would not notice", async () => {
    const { page } = await browser.open(framed("allow-scripts", "script-src 'none'"));
    await saysItPlainly(page.frameLocator("iframe"));
    await page.close();
  });

  test("and in a browser with scripts switched off", async () => {
    const context = await browser.context.browser()?.newContext({ javaScriptEnabled: false });
    const page = await (context ?? browser.context).newPage();
    if (!context) {
      const session = await browser.context.newCDPSession(page);
      await session.send("Emulation.setScriptExecutionDisabled", { value: true });
    }
    await page.goto(pathToFileURL(file).href);
    await saysItPlainly(page);
    if (process.env.STEPSCOPE_SHOTS) await page.screenshot({ path: join(process.env.STEPSCOPE_SHOTS, "static.png") });
    await page.close();
    await context?.close();
  });
});
