// The page as the command line writes it, from a trace: the same figures as its --json, no request, hostile names inert.
// Needs a built CLI at build/stepscope or in STEPSCOPE_CLI.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { load } from "./load.mjs";
import { noBrowser, startBrowser } from "./page.mjs";
import { syntheticTrace } from "./trace.mjs";

const { formatValue } = await load("draw/format.ts");
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const CLI = process.env.STEPSCOPE_CLI ?? join(root, "build", "stepscope");
const CORPUS = process.env.STEPSCOPE_CORPUS ?? join(root, "..", "shared", "data");
const HOSTILE = `</script><img src=x onerror=alert(1)><!--`;
const noCli = existsSync(CLI) ? noBrowser : `no command line at ${CLI}; run make build or set STEPSCOPE_CLI`;

describe("the page of the command line", { skip: noCli }, () => {
  let browser;
  let folder;
  before(async () => {
    browser = await startBrowser();
    folder = mkdtempSync(join(tmpdir(), "stepscope-cli-"));
  });
  after(async () => {
    await browser?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const run = (...args) => {
    try {
      return execFileSync(CLI, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"] });
    } catch (error) {
      if (error.status === 4) return error.stdout; // partial input: the report is made all the same
      throw error;
    }
  };
  const pageOf = async (path, options) => {
    const file = join(folder, `page${Math.random()}.html`);
    run("report", path, "--no-cache", "--html", file);
    return { shown: await browser.open("", { ...options, file }), json: JSON.parse(run("report", path, "--no-cache", "--json")) };
  };
  const agrees = async ({ shown, json }) => {
    const text = await shown.page.evaluate(() => document.getElementById("main").textContent);
    for (const [answer, { scalars, findings, summary }] of Object.entries(json.answers)) {
      if ((await shown.page.locator(`[data-panel="${answer}"]`).count()) === 0) {
        assert.ok(Object.values(scalars).every((scalar) => scalar.value === null), `${answer} is shown`);
        assert.ok((await shown.page.locator('[data-panel="absent"]').textContent()).includes(summary));
        continue;
      }
      for (const [name, scalar] of Object.entries(scalars)) {
        const found = shown.page.locator(`[data-panel="${answer}"] [data-scalar="${name}"]`).first();
        const said = await found.evaluate((one) => (one.closest(".unknown-figures") ?? one).textContent);
        assert.ok(said.includes(formatValue(scalar.value, scalar.unit)), `${answer}.${name} = ${scalar.value}`);
      }
      for (const finding of findings) assert.ok(text.includes(finding.sentence));
    }
    for (const issue of json.issues) assert.ok(text.includes(issue.sentence));
    assert.equal(await shown.page.locator(".failed").count(), 0);
    assert.deepEqual(shown.errors, []);
    assert.deepEqual(shown.requests(), []);
  };

  test("two ranks of a made-up training, with hostile names", async () => {
    for (const rank of [0, 1]) {
      const trace = syntheticTrace({ rank, steps: 4, layers: 2 });
      for (const event of trace.traceEvents) if (event.name === "aten::gelu") event.name = HOSTILE;
      for (const event of trace.traceEvents) if (event.cat === "kernel" && event.name.includes("Gelu")) event.name = HOSTILE;
      writeFileSync(join(folder, `rank${rank}.json`), JSON.stringify(trace));
    }
    const both = await pageOf(folder);
    await agrees(both);
    assert.equal(await both.shown.page.locator("img").count(), 0);
    assert.equal(both.json.input.files.length, 2);
    assert.ok((await both.shown.page.locator("main").textContent()).includes(HOSTILE));
    assert.equal(readFileSync(fileURLToPath(both.shown.page.url()), "utf8").includes(HOSTILE), false);
  });

  test("a trace without events", async () => {
    const file = join(folder, "empty.trace");
    writeFileSync(file, '{"traceEvents": []}');
    await agrees(await pageOf(file));
  });

  test("the five pages of a state of memory", async () => {
    const state = join(root, "tests", "traces", "tiny_memory_state.json");
    run("report", state, "--no-cache", "--only", "memory_state", "--html", folder);
    const { largest, peak } = JSON.parse(readFileSync(state, "utf8"));
    const bytes = (...names) => names.reduce((sum, name) => sum + (largest[name]?.bytes ?? 0), 0);
    const wanted = {
      params_memory: bytes("parameter", "buffer"),
      grads_memory: bytes("gradient"),
      os_memory: bytes("master_parameter", "optimizer_state"),
      activation_memory: bytes("activation", "input"),
      summary: peak.total_bytes,
    };
    for (const [name, size] of Object.entries(wanted)) {
      const shown = await browser.open("", { file: join(folder, `${name}_sunburst.html`) });
      const center = await shown.page.locator('[data-panel="memory_state"] .sunburst .value').textContent();
      assert.equal(center, formatValue(size, "bytes"), name);
      assert.ok((await shown.page.locator(".sunburst path").count()) > 5, name);
      assert.equal(await shown.page.locator(".failed").count(), 0);
      assert.deepEqual([shown.errors, shown.requests()], [[], []]);
    }
  });

  const real = ["deepseek/train.json", "hta/ns_resolution_trace", "hta/cpu_only", "hta/trace_diff", "hta/amd_trace"];
  for (const path of real) {
    const skip = existsSync(join(CORPUS, path)) ? false : `no ${path} in ${CORPUS}`;
    test(`real trace ${path}`, { skip }, async () => agrees(await pageOf(join(CORPUS, path))));
  }
});
