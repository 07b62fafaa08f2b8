// `stepscope view` itself in a real browser, on real traces: what is drawn, found, chosen and asked, and that no name acts.
// Needs a built CLI at build/stepscope or in STEPSCOPE_CLI, and ../shared/data or STEPSCOPE_CORPUS.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { noBrowser, startBrowser } from "./page.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CLI = process.env.STEPSCOPE_CLI ?? join(root, "build", "stepscope");
const CORPUS = process.env.STEPSCOPE_CORPUS ?? join(root, "..", "shared", "data");
const TRAIN = join(CORPUS, "deepseek", "train.json");
const noCli = existsSync(CLI) ? noBrowser : `no command line at ${CLI}; run make build or set STEPSCOPE_CLI`;
const noTrain = existsSync(TRAIN) ? false : `no ${TRAIN}; set STEPSCOPE_CORPUS`;

describe("stepscope view", { skip: noCli }, () => {
  let browser;
  let folder;
  const servers = [];
  before(async () => {
    browser = await startBrowser();
    folder = mkdtempSync(join(tmpdir(), "stepscope-view-"));
  });
  after(async () => {
    await browser?.close();
    for (const server of servers) server.kill("SIGINT");
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const open = async (paths, fragment) => {
    const server = spawn(CLI, ["view", ...paths, "--no-browser", "--no-cache"], { stdio: ["ignore", "pipe", "ignore"] });
    servers.push(server);
    const address = await new Promise((resolve) => server.stdout.once("data", (text) => resolve(String(text).trim())));
    const page = await browser.context.newPage();
    const errors = [];
    const asked = [];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("request", (request) => asked.push(request.url()));
    page.on("dialog", (dialog) => {
      errors.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.goto(address + fragment);
    return { page, errors, asked, address };
  };
  const drawn = (page) => page.waitForFunction(() => (window.stepscopeTimeline?.frame?.rects ?? 0) > 0);

  test("a real trace: its timeline is drawn, searched and chosen from", { skip: noTrain }, async () => {
    const { page, errors, asked, address } = await open([TRAIN], "#/timeline?run=r1");
    await drawn(page);
    const rects = await page.evaluate(() => window.stepscopeTimeline.frame.rects);
    assert.ok(rects > 500 && rects <= 15_000, `${rects} rectangles`);
    const text = await page.locator("body").textContent();
    assert.ok(text.includes("stream 7") && text.includes("thread 1166"));
    await page.keyboard.press("/");
    await page.keyboard.type("internode::combine");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.body.textContent.includes("internode::combine<"));
    assert.deepEqual(errors, []);
    assert.ok(asked.every((url) => url.startsWith(address)), "nothing but the server is asked");
    await page.close();
  });

  test("the answers are those of the report, and a query is answered", { skip: noTrain }, async () => {
    const { page, errors, address } = await open([TRAIN], "");
    await page.waitForFunction(() => document.body.textContent.includes("129.5 ms"));
    assert.ok((await page.locator("body").textContent()).includes("96.3 %")); // of communication is hidden
    await page.goto(`${address}#/query?run=r1`);
    const box = page.locator("textarea");
    await box.fill("select count(*) as kernels from kernels");
    await box.press("Control+Enter");
    await page.waitForFunction(() => [...document.querySelectorAll("td")].some((cell) => cell.textContent === "963"));
    await box.fill("select nonsense");
    await box.press("Control+Enter");
    await page.waitForFunction(() => document.body.textContent.includes("unknown column 'nonsense'"));
    assert.deepEqual(errors.filter((error) => !error.includes("400")), []);
    await page.close();
  });

  test("names act nowhere, and ranks stand below each other", async () => {
    const hostile = `</script><img src=x onerror=alert(1)>\u202e`;
    const rank = (number) => {
      const file = join(folder, `rank${number}.json`);
      const op = (ts, dur, name) => ({ ph: "X", cat: "cpu_op", name, pid: 7, tid: 8, ts, dur });
      const traceEvents = [op(0, 100, "ProfilerStep#1"), op(10, 50, hostile), op(70, 10, "x".repeat(1_000_000))];
      writeFileSync(file, JSON.stringify({ schemaVersion: 1, distributedInfo: { rank: number, world_size: 2 }, traceEvents }));
      return file;
    };
    const { page, errors } = await open([rank(0), rank(1)], "#/timeline?run=r1");
    await drawn(page);
    const text = await page.locator("body").textContent();
    assert.ok(text.indexOf("rank 0") >= 0 && text.indexOf("rank 1") > text.indexOf("rank 0"));
    for (const view of ["operators", "files", "more"]) {
      await page.evaluate((name) => (location.hash = `#/${name}?run=r1`), view);
      await page.waitForTimeout(300);
    }
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(errors, []);
    await page.close();
  });
});
