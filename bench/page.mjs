// The timeline page in a real browser: when its first picture is there, and what a picture costs while it is panned and
// zoomed.
//
//   node bench/page.mjs STEPSCOPE PATH…  →  JSON: first_picture_ms (from the start of the server; the runs are in the cache when
//   this was run before), frames with median and 95th percentile of the CPU time of the renderer and GPU processes, of all
//   their threads, and the memory of the renderer beyond an empty tab's
//
//   node bench/page.mjs --memory STEPSCOPE SNAPSHOT…  →  JSON: first_picture_ms of the page of memory (from the start of the server;
//   navigation_ms: from the navigation), the CPU time until then of the server and of the renderer and GPU processes, again_ms (the page is loaded again, the run is open), nodes of the document, renderer_mb
//
// Chromium draws in software here, as on a machine without a GPU. Not part of CI: figures of a shared machine.
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { chromium } from "../web/node_modules/playwright-core/index.mjs";

const memory = process.argv[2] === "--memory";
const [stepscope, ...paths] = process.argv.slice(memory ? 3 : 2);
const FRAMES = 300;

function cpuMs(pid) {
  let ns = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    try {
      ns += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]);
    } catch {
      // a thread that ended meanwhile
    }
  }
  return ns / 1e6;
}

function privateMb(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kb = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0);
  return (kb("Private_Clean") + kb("Private_Dirty")) / 1024;
}

const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const session = await browser.newBrowserCDPSession();
const processes = async (type) =>
  (await session.send("SystemInfo.getProcessInfo")).processInfo.filter((one) => one.type === type).map((one) => one.id);

const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
await page.goto("about:blank");
const empty = Math.max(...(await processes("renderer")).map(privateMb));

const began = performance.now();
const server = spawn(stepscope, ["view", ...paths, "--no-browser"], { stdio: ["ignore", "pipe", "inherit"] });
const address = await new Promise((resolve) => server.stdout.once("data", (text) => resolve(String(text).trim())));

async function measureMemory() {
  const drawn = () => page.waitForFunction(() => document.querySelector('[data-panel="snapshot"] .stack svg path') !== null, null, { timeout: 600_000, polling: 20 });
  const pids = [...(await processes("renderer")), ...(await processes("GPU"))];
  const cpu = () => pids.map(cpuMs).reduce((sum, value) => sum + value, 0);
  const [navigated, idle] = [performance.now(), cpu()];
  await page.goto(`${address}#/memory?run=r1`);
  await drawn();
  const [first, navigation] = [began, navigated].map((from) => Math.round(performance.now() - from));
  const [serverCpu, pageCpu] = [cpuMs(server.pid), cpu() - idle].map(Math.round);
  const reloaded = performance.now();
  await page.reload();
  await drawn();
  return {
    first_picture_ms: first,
    navigation_ms: navigation,
    server_cpu_ms: serverCpu,
    page_cpu_ms: pageCpu,
    again_ms: Math.round(performance.now() - reloaded),
    nodes: await page.evaluate(() => document.getElementsByTagName("*").length),
    renderer_mb: Math.round(Math.max(...(await processes("renderer")).map(privateMb)) - empty),
  };
}

async function measureTimeline() {
  await page.goto(`${address}#/timeline?run=r1`);
  await page.waitForFunction(() => (window.stepscopeTimeline?.frame?.rects ?? 0) > 0, null, { timeout: 600_000, polling: 20 });
  const first = performance.now() - began;
  await page.waitForTimeout(500);
  const box = await page.locator("canvas").last().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const pids = [...(await processes("renderer")), ...(await processes("GPU"))];
  const costs = [];
  let rects = 0;
  for (let i = 0; i < FRAMES; i++) {
    const before = pids.map(cpuMs);
    // in, along, out and back again
    const part = Math.floor(i / 60) % 5;
    if (part === 0 || part === 2) await page.keyboard.press("w");
    else if (part === 1 || part === 3) await page.keyboard.press("d");
    else await page.keyboard.press("s");
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    costs.push(pids.map(cpuMs).reduce((sum, value, at) => sum + value - before[at], 0));
    rects = Math.max(rects, await page.evaluate(() => window.stepscopeTimeline.frame.rects));
  }
  costs.sort((a, b) => a - b);
  const renderer = Math.max(...(await processes("renderer")).map(privateMb));
  return {
    first_picture_ms: Math.round(first),
    frame_cpu_median_ms: quantile(costs, 0.5),
    frame_cpu_p95_ms: quantile(costs, 0.95),
    most_rects: rects,
    renderer_mb: Math.round(renderer - empty),
  };
}

try {
  console.log(JSON.stringify(await (memory ? measureMemory() : measureTimeline())));
} finally {
  server.kill();
  await browser.close();
}
