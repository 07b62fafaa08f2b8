// The served page in a real browser, against a stub of the server: what it asks, what it draws, its keys and addresses.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { hash, noBrowser, params, sample, startBrowser } from "./page.mjs";
import { COUNTERS, HOSTILE, HUGE, RANKS, SLICES, startStub } from "./stub.mjs";

const TIMELINE = "#/timeline?run=r1";
const NEAR = `${TIMELINE}&from=1000000000&to=1010000000`; // 10 ms
const NO_WEBGL = () => {
  const get = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    return kind === "webgl2" ? null : get.call(this, kind, ...rest);
  };
};

// Without a graphics device the page would choose the 2D canvas by itself.
const SLOW_WEBGL = () => {
  const get = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, options) {
    return get.call(this, kind, kind === "webgl2" ? { ...options, failIfMajorPerformanceCaveat: false } : options);
  };
  const extension = WebGL2RenderingContext.prototype.getExtension;
  WebGL2RenderingContext.prototype.getExtension = function (name) {
    return name === "WEBGL_debug_renderer_info" ? null : extension.call(this, name);
  };
};

describe("the served page", { skip: noBrowser }, () => {
  let browser;
  let stub;
  before(async () => {
    browser = await startBrowser();
    stub = await startStub();
  });
  after(async () => {
    await browser?.close();
    await stub?.close();
  });

  const open = async (fragment = "", options = {}) => {
    const page = await browser.context.newPage();
    const errors = [];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("dialog", (dialog) => {
      errors.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.emulateMedia({ colorScheme: options.dark ? "dark" : "light" });
    if (options.before) await page.addInitScript(options.before);
    await page.goto((options.stub ?? stub).address + fragment);
    return { page, errors };
  };
  /** Until no tile is waited for and no frame is drawn any more. */
  const settled = async (page) => {
    await page.waitForFunction(() => {
      const state = window.stepscopeTimeline;
      if (!state || state.waiting() > 0 || document.querySelector(".tl-plot")?.dataset.busy !== "false") return false;
      const before = window.framesBefore;
      window.framesBefore = state.frames();
      return before === state.frames();
    }, undefined, { polling: 120 });
    // Its address follows what is seen a moment later.
    await page.waitForTimeout(300);
  };
  const facts = (page) => page.evaluate(() => window.stepscopeTimeline.frame);
  const plot = (page) => page.locator(".tl-overlay");
  const tilesAsked = (from) => stub.asked.slice(from).filter((one) => one.name === "tiles").map((one) => one.query);

  test("cuts the panels of the report into pages, and loses none", async () => {
    const { page, errors } = await open();
    await page.waitForSelector('[data-panel="overview"]');
    assert.match(await hash(page), /#\/health\?run=r1$/);
    const seen = new Set();
    for (const link of await page.locator("nav.views a").all()) {
      await link.click();
      await page.waitForSelector(`nav.views a[aria-current="page"] >> text=${await link.textContent()}`);
      for (const id of await page.$$eval("[data-panel]", (all) => all.map((one) => one.dataset.panel))) {
        assert.ok(!seen.has(id), `${id} twice`);
        seen.add(id);
      }
    }
    for (const name of Object.keys(sample().answers)) assert.ok(seen.has(name), name);
    assert.equal(await page.locator(".failed").count(), 0);
    await page.goBack();
    assert.equal(await page.locator("nav.views a[aria-current]").textContent(), "Compare");
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("an answer from tomorrow is on the page More; links between panels go to their page", async () => {
    const report = sample();
    report.answers.fresh = { summary: "New?", scalars: { speed: { value: 1, unit: "count", meaning: "" } } };
    report.issues.push({ code: "cut", severity: "lost", sentence: "The file ends", count: 1 });
    const other = await startStub({ report, openings: 2 });
    const { page, errors } = await open("#/more?run=r1", { stub: other });
    await page.waitForSelector('[data-panel="fresh"]');
    await page.locator("nav.views a", { hasText: "Health" }).click();
    await page.locator('a[href="#quality"]').first().click();
    await page.waitForSelector('[data-panel="quality"]');
    assert.match(await hash(page), /#\/files/);
    assert.deepEqual(errors, []);
    await page.close();
    await other.close();
  });

  test("lists the runs, follows one that is being opened, and says why one failed", async () => {
    const run = (id, more) => ({ id, name: `${id} ${HOSTILE}`, path_shown: "/data", state: "ready", error: null, revision: 1, ...more });
    const other = await startStub({ runs: [run("r1"), run("r2", { state: "opening", share: 0.5 }), run("r3", { state: "failed", error: { message: "not a trace", hint: "Give a trace." } })] });
    const { page, errors } = await open("", { stub: other });
    await page.waitForSelector('[data-run="r3"]');
    assert.match(await page.locator('[data-run="r2"]').textContent(), /being opened · 50/);
    assert.match(await page.locator('[data-run="r3"]').textContent(), /not a trace.*Give a trace/);
    assert.equal(await page.locator("img").count(), 0);
    other.runs[1].state = "ready";
    await page.waitForFunction(() => !document.body.textContent.includes("being opened"));
    const count = other.asked.filter((one) => one.name === "runs").length;
    await page.waitForTimeout(2300);
    assert.equal(other.asked.filter((one) => one.name === "runs").length, count); // nothing is opened: not asked again
    await page.locator('[data-run="r1"] a').click();
    await page.waitForSelector('[data-panel="overview"]');
    await page.goBack();
    await page.waitForSelector('[data-run="r3"]');
    assert.deepEqual(errors, []);
    await page.close();
    await other.close();
  });

  for (const [kind, before] of [["webgl2", SLOW_WEBGL], ["canvas", NO_WEBGL]]) {
    test(`${kind}: draws a million slices with at most 15,000 rectangles a frame, and asks for what is in view only`, async () => {
      assert.ok(SLICES > 1_000_000);
      const from = stub.asked.length;
      const { page, errors } = await open(TIMELINE, { before });
      await settled(page);
      if ((await page.evaluate(() => window.stepscopeTimeline.renderer)) !== kind) return void (await page.close()); // no WebGL2 here
      const most = { rects: 0 };
      await page.evaluate(() => (window.mostRects = 0));
      const lanes = new Set(tilesAsked(from).flatMap((query) => query.lanes.split(",")));
      assert.ok(lanes.size < (RANKS * 5) / 1.2, `${lanes.size} lanes of ${RANKS * 5}`);
      for (const key of ["w", "w", "d", "d", "w", "s", "a", "w", "w", "w", "w"]) {
        await page.keyboard.press(key);
        await settled(page);
        most.rects = Math.max(most.rects, (await facts(page)).rects);
      }
      assert.ok(most.rects > 1000 && most.rects <= 15_000, `${most.rects}`);
      const { from: seenFrom, to: seenTo } = await params(page);
      const asked = tilesAsked(from);
      const length = Number(seenTo) - Number(seenFrom);
      const last = asked.at(-1);
      // No more than one tile beyond what is seen, at a level that fits the screen.
      assert.ok(Number(last.to) - Number(last.from) <= 1.2 * length, `${last.from}-${last.to}`);
      assert.ok(Number(last.from) >= Number(seenFrom) - 2 * length && Number(last.to) <= Number(seenTo) + 2 * length);
      const pixels = await plot(page).screenshot();
      assert.ok(pixels.length > 5000); // something is drawn
      assert.deepEqual(errors, []);
      await page.close();
    });
  }

  test("panning there and back asks nothing anew", async () => {
    const { page } = await open(NEAR);
    await settled(page);
    await page.keyboard.press("d");
    await settled(page);
    const from = stub.asked.length;
    await page.keyboard.press("a");
    await page.keyboard.press("d");
    await settled(page);
    assert.deepEqual(tilesAsked(from), []);
    await page.close();
  });

  test("scrolling asks for the lanes that come into view", async () => {
    const { page } = await open(NEAR);
    await settled(page);
    const from = stub.asked.length;
    await page.locator(".tl-scroll").evaluate((element) => (element.scrollTop = 900));
    await settled(page);
    const lanes = new Set(tilesAsked(from).flatMap((query) => query.lanes.split(",").map(Number)));
    assert.ok(lanes.size > 0 && [...lanes].every((lane) => lane >= 15), `${[...lanes]}`);
    assert.equal((await params(page)).top, "900");
    await page.locator(".tl-names li.rank button").first().waitFor();
    await page.close();
  });

  test("ctrl and wheel zoom at the pointer, drag pans, the minimap moves", async () => {
    const { page } = await open(NEAR);
    await settled(page);
    const box = await plot(page).boundingBox();
    await page.mouse.move(box.x + 300, box.y + 100);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    await settled(page);
    const near = await params(page);
    assert.ok(Number(near.to) - Number(near.from) < 5e6);
    const under = Number(near.from) + ((Number(near.to) - Number(near.from)) * 300) / box.width;
    assert.ok(Math.abs(under - (1e9 + (1e7 * 300) / box.width)) < 20_000, `${under}`);
    await page.mouse.down();
    await page.mouse.move(box.x + 200, box.y + 100, { steps: 4 });
    await page.mouse.up();
    await settled(page);
    assert.ok(Number((await params(page)).from) > Number(near.from));
    assert.equal((await params(page)).slice, undefined); // a drag is no click
    const mini = await page.locator(".tl-minimap").boundingBox();
    await page.mouse.click(mini.x + mini.width / 2, mini.y + 10);
    await settled(page);
    assert.ok(Math.abs(Number((await params(page)).from) - 5e9) < 2e7);
    await page.close();
  });

  test("a click chooses a slice; Enter goes along its link, Shift+Enter and back return", async () => {
    const { page, errors } = await open(NEAR);
    await settled(page);
    await plot(page).click({ position: { x: 100, y: 24 + 1 + 2 * 18 + 9 } });
    await page.waitForSelector("[data-slice-name]");
    assert.equal(await page.locator("[data-slice-name]").textContent(), "aten::addmm");
    const chosen = (await params(page)).slice;
    assert.match(chosen, /^0:\d+$/);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("[data-slice-name]")?.textContent === "cudaLaunchKernel");
    assert.notEqual((await params(page)).slice, chosen);
    await page.goBack();
    await page.waitForFunction(() => document.querySelector("[data-slice-name]")?.textContent === "aten::addmm");
    assert.equal((await params(page)).slice, chosen);
    await page.keyboard.press("f");
    await settled(page);
    assert.ok(Number((await params(page)).to) - Number((await params(page)).from) < 1e6);
    await page.keyboard.press("m");
    assert.match((await params(page)).marks, /^\d+$/);
    await page.keyboard.press("m");
    assert.equal((await params(page)).marks, undefined);
    await page.keyboard.press("Escape");
    assert.equal((await params(page)).slice, undefined);
    assert.equal(await page.locator(".tl-pane").count(), 0);
    assert.deepEqual(errors, []);
    await page.close();
  });

  /** How many pixels of the canvas have about this color. */
  const pixelsOf = (page, color) =>
    page.evaluate(([r, g, b]) => {
      const canvas = document.querySelector(".tl-overlay");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 24) count++;
      return count;
    }, color);

  test("C shows the critical path of the ranks in view, in the address; a slice on it says why", async () => {
    const from = stub.asked.length;
    const { page, errors } = await open(NEAR);
    await settled(page);
    const asked = (name) => stub.asked.slice(from).filter((one) => one.name === name).map((one) => one.query);
    assert.equal(asked("path").length, 0);
    const MAGENTA = [0xc2, 0, 0x6b];
    assert.equal(await pixelsOf(page, MAGENTA), 0);
    await page.keyboard.press("c");
    await settled(page);
    assert.equal((await params(page)).path, "1");
    const ranks = new Set(asked("path").flatMap((query) => query.ranks.split(",").map(Number)));
    assert.ok(ranks.has(0) && ranks.size < RANKS / 1.5, `${[...ranks]}`);
    assert.ok((await pixelsOf(page, MAGENTA)) > 500);
    const { width } = await plot(page).boundingBox();
    await plot(page).hover({ position: { x: (width * 5.2) / 10, y: 24 + 1 + 2 * 18 + 9 } });
    await page.waitForSelector(".tl-path");
    assert.match(await page.locator(".tl-path").textContent(), /the host ran.*program order/);
    await page.locator("button", { hasText: "Critical path" }).click();
    await settled(page);
    assert.equal(await pixelsOf(page, MAGENTA), 0);
    assert.equal((await params(page)).path, undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("phases stand in the headings of the ranks in view, and are named under the pointer", async () => {
    const from = stub.asked.length;
    const { page, errors } = await open(TIMELINE);
    await settled(page);
    const ranks = new Set(stub.asked.slice(from).filter((one) => one.name === "phases").flatMap((one) => one.query.ranks.split(",")));
    assert.ok(ranks.has("0") && ranks.size < RANKS / 1.5, `${[...ranks]}`);
    await page.locator('[data-rank="0"]').waitFor();
    await plot(page).hover({ position: { x: 2, y: 12 } });
    assert.match(await page.locator(".tl-tip").textContent(), /forward.*45\.0 ms/);
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("counters are asked for when they come into view; a gap is no value; the machine is folded at first", async () => {
    const from = stub.asked.length;
    const { page, errors } = await open(TIMELINE);
    await settled(page);
    const asked = () => [...new Set(stub.asked.slice(from).filter((one) => one.name === "counters").flatMap((one) => one.query.lanes.split(",").map(Number)))];
    assert.deepEqual(asked(), []);
    await page.locator(".tl-scroll").evaluate((element) => (element.scrollTop = element.scrollHeight));
    await settled(page);
    assert.deepEqual(asked(), [COUNTERS[0]]);
    assert.equal(await page.locator(`[data-rank="${RANKS}"] button`).getAttribute("aria-expanded"), "false");
    await page.locator(`[data-rank="${RANKS}"] button`).click();
    await page.locator(".tl-scroll").evaluate((element) => (element.scrollTop = element.scrollHeight));
    await settled(page);
    assert.deepEqual(asked().sort((a, b) => a - b), COUNTERS);
    const lane = page.locator(`[data-lane="${COUNTERS[2]}"]`);
    assert.match(await lane.textContent(), /eth0 · sent.*0 B\/s to 9 B\/s/);
    const [box, canvas] = [await lane.boundingBox(), await plot(page).boundingBox()];
    const value = async (share) => {
      await plot(page).hover({ position: { x: share * canvas.width, y: box.y - canvas.y + 15 } });
      return page.locator("[data-counter-value]").textContent();
    };
    // The answer is of whole tiles, beyond what is seen.
    const query = stub.asked.filter((one) => one.name === "counters").at(-1).query;
    const at = (tenth) => ((tenth + 0.5) / 10) * ((Number(query.to) - Number(query.from)) / 1e10);
    assert.match(await value(at(2)), /^2 B\/s/);
    assert.match(await value(at(4)), /nothing is known/);
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("Perfetto gets the file of a rank when it has answered, and is not asked before", async () => {
    const { page, errors } = await open(`${NEAR}&slice=2:2001002`);
    const wanted = [];
    await browser.context.route("https://ui.perfetto.dev/**", (route) => {
      wanted.push(route.request().url());
      const script = `let pings = 0;
        addEventListener("message", (event) => {
          if (event.data === "PING") { pings++; if (pings === 3) event.source.postMessage("PONG", event.origin); }
          else document.title = event.data.perfetto.title + "|" + new TextDecoder().decode(event.data.perfetto.buffer);
        });`;
      return route.fulfill({ contentType: "text/html", body: `<script>${script}</script>` });
    });
    await settled(page);
    assert.deepEqual(wanted, []);
    const [tab] = await Promise.all([browser.context.waitForEvent("page"), page.locator("button", { hasText: "Open in Perfetto" }).click()]);
    await tab.waitForFunction(() => document.title !== "");
    assert.equal(await tab.title(), "stepscope: rank 2|trace of rank 2");
    assert.deepEqual(wanted, ["https://ui.perfetto.dev/"]);
    await tab.close();
    await browser.context.unroute("https://ui.perfetto.dev/**");
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("Perfetto's tab is answered where it is Perfetto's page, and not where it was led elsewhere", async () => {
    const { page, errors } = await open(`${NEAR}&slice=2:2001002`);
    const serve = (address, script) => browser.context.route(`${address}/**`, (route) => route.fulfill({ contentType: "text/html", body: `<script>${script}</script>` }));
    await serve("https://ui.perfetto.dev", `
      if (location.search === "") location.replace("https://elsewhere.test/");
      else addEventListener("message", (event) => {
        if (event.data === "PING") event.source.postMessage("PONG", event.origin);
        else document.title = event.data.perfetto.title;
      });`);
    await serve("https://elsewhere.test", `
      let said = 0;
      setInterval(() => said++ < 10 ? opener.postMessage("PONG", "*") : location.replace("https://ui.perfetto.dev/?back"), 50);`);
    await settled(page);
    const [tab] = await Promise.all([browser.context.waitForEvent("page"), page.locator("button", { hasText: "Open in Perfetto" }).click()]);
    await tab.waitForURL("https://ui.perfetto.dev/?back"); // what is asked of a page that is about to go fails, now and then
    await tab.waitForFunction(() => document.title !== "");
    assert.equal(await tab.title(), "stepscope: rank 2");
    await tab.close();
    for (const address of ["https://ui.perfetto.dev", "https://elsewhere.test"]) await browser.context.unroute(`${address}/**`);
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("a kernel tells the code of its launch; links that are cut are said to be", async () => {
    const { page, errors } = await open(`${NEAR}&slice=0:5008000`);
    await settled(page);
    await page.waitForSelector(".tl-stack");
    const frames = await page.locator(".tl-stack li").allTextContents();
    assert.deepEqual(frames, [`${HOSTILE}.py:7 forward`, "train.py:1 main"]);
    assert.match(await page.locator(".links").textContent(), /launched by/);
    assert.equal(await page.locator("[data-links-cut]").count(), 0);
    await page.close();
    const other = await open(`${NEAR}&slice=0:6000050`);
    await other.page.waitForSelector("[data-links-cut]");
    assert.match(await other.page.locator(".links").textContent(), /collective · rank 1/);
    await other.page.keyboard.press("Enter");
    await other.page.waitForFunction(() => location.hash.includes("slice=1:"));
    assert.equal(await other.page.locator("img").count(), 0);
    assert.deepEqual([...errors, ...other.errors], []);
    await other.page.close();
  });

  test("a click on several slices in one goes closer", async () => {
    const { page } = await open(TIMELINE);
    await settled(page);
    await plot(page).click({ position: { x: 400, y: 24 + 1 + 3 * 18 + 9 } });
    await settled(page);
    assert.ok(Number((await params(page)).to) - Number((await params(page)).from) <= 1.3e9);
    await page.close();
  });

  test("shift and drag choose a stretch of the lanes under it, with statistics", async () => {
    const { page, errors } = await open(NEAR);
    await settled(page);
    const box = await plot(page).boundingBox();
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + 100, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 120, { steps: 5 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await page.waitForSelector("[data-range] table");
    await page.locator('[data-range] th[data-column="count"] button').click(); // the pane's table keeps its order to itself
    await page.waitForSelector('[data-range] th[data-column="count"][aria-sort="descending"]');
    assert.ok(Object.keys(await params(page)).every((key) => !key.startsWith("sort.")));
    const asked = stub.asked.filter((one) => one.name === "selection").at(-1).query;
    assert.equal(asked.lanes, "0,1");
    assert.equal((await params(page)).on, "0-1");
    assert.ok(Math.abs(Number(asked.from) - (1e9 + (1e7 * 100) / box.width)) < 20_000);
    assert.ok((await page.locator("[data-range]").textContent()).includes(HOSTILE));
    assert.equal(await page.locator("img").count(), 0);
    const view = await params(page);
    await page.keyboard.press("f");
    await settled(page);
    assert.ok(Number((await params(page)).to) - Number((await params(page)).from) < Number(view.to) - Number(view.from));
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("search: / goes there, Enter searches, N goes from one to the next, all in the address", async () => {
    const { page, errors } = await open(NEAR);
    await settled(page);
    await page.keyboard.press("/");
    await page.keyboard.type("allreduce");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-found]");
    assert.equal((await params(page)).find, "allreduce");
    assert.match(await page.locator(".tl-count").textContent(), /4,000 found/);
    await page.keyboard.press("Escape"); // leaves the field
    await page.keyboard.press("n");
    await page.waitForSelector("[data-slice-name]");
    await page.keyboard.press("n");
    await page.waitForFunction(() => document.querySelector(".tl-count")?.textContent.startsWith("2 of"));
    assert.match((await params(page)).slice, /^0:\d+$/);
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("an address shows the same state anew", async () => {
    const address = `${NEAR}&top=150&slice=0:2001002&find=memcpy&marks=1005000000&folded_ranks=2,6-7&folded_lanes=0`;
    const { page, errors } = await open(address);
    await settled(page);
    await page.waitForSelector("[data-slice-name]");
    assert.deepEqual(await params(page), Object.fromEntries(new URLSearchParams(address.split("?")[1])));
    assert.equal(await page.locator(".tl-scroll").evaluate((element) => Math.round(element.scrollTop)), 150);
    assert.equal(await page.locator('[data-rank="2"] button').getAttribute("aria-expanded"), "false");
    await page.locator('[data-rank="2"] button').click();
    assert.equal((await params(page)).folded_ranks, "6-7");
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("names with markup, of right-to-left letters and of a megabyte are text", async () => {
    for (const [slice, name] of [[1_000_007, HOSTILE], [1_000_008, HUGE]]) {
      const { page, errors } = await open(`${TIMELINE}&from=10000000&to=22000000&slice=0:${slice}`);
      await settled(page);
      await page.waitForSelector("[data-slice-name] bdi");
      const text = await page.locator("[data-slice-name] bdi").textContent();
      assert.ok(text.length > 20 && name.startsWith(text), text.slice(0, 80));
      assert.equal(await page.locator("img").count(), 0);
      assert.equal(await page.locator("script").count(), 1);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 1280);
      assert.deepEqual(errors, []);
      await page.close();
    }
  });

  test("goes on in 2D when the graphics driver takes its context away", async () => {
    const { page } = await open(NEAR, { before: SLOW_WEBGL });
    await settled(page);
    if ((await page.evaluate(() => window.stepscopeTimeline.renderer)) === "webgl2") {
      await page.evaluate(() => document.querySelector(".tl-plot canvas").getContext("webgl2").getExtension("WEBGL_lose_context").loseContext());
      await page.waitForFunction(() => window.stepscopeTimeline.renderer === "canvas");
      assert.ok((await facts(page)).rects > 100);
    }
    await page.close();
  });

  test("a slice that is not there, and a server that is away, are said", async () => {
    const other = await startStub();
    const { page } = await open(`${NEAR}&slice=0:999999999`, { stub: other });
    await page.waitForSelector(".tl-pane .failed");
    assert.match(await page.locator(".tl-pane .failed").textContent(), /no such slice.*Reload/);
    await settled(page);
    await other.close();
    await page.keyboard.press("Home");
    await page.waitForSelector(".tl-fault");
    assert.match(await page.locator(".tl-fault").textContent(), /does not answer/);
    await page.close();
  });

  test("query: runs with Ctrl+Enter, sorts, says faults with a hint, and is in the address", async () => {
    const { page, errors } = await open("#/query?run=r1");
    await page.locator("textarea").fill("SELECT name, total_ns FROM x");
    await page.keyboard.press("Control+Enter");
    await page.waitForSelector('[data-table="query"]');
    assert.equal((await params(page)).sql, "SELECT name, total_ns FROM x");
    assert.match(await page.locator(".banner").textContent(), /The first 120 rows are here; there are more/);
    await page.locator('th[data-column="total_ns"] button').click();
    await page.waitForFunction(() => document.querySelector("tbody tr td")?.textContent === "kernel_119");
    assert.deepEqual(errors, []);
    await page.locator("textarea").fill("DROP <b>");
    await page.locator("textarea").press("Control+Enter");
    await page.waitForSelector(".failed");
    assert.match(await page.locator(".failed").textContent(), /syntax error.*begin with SELECT/);
    await page.goBack();
    await page.waitForSelector('[data-table="query"]');
    await page.waitForFunction(() => document.querySelector("textarea")?.value === "SELECT name, total_ns FROM x");
    // Emptied and run: what was asked before is gone, and what to do is said.
    await page.locator("textarea").fill(" ");
    await page.locator("button.run").click();
    await page.waitForSelector(".empty");
    assert.match(await page.locator(".empty").textContent(), /No statement was run\. Write one above, or press one of the examples/);
    assert.equal(await page.locator('[data-table="query"]').count(), 0);
    assert.equal((await params(page)).sql, undefined);
    await page.close();
  });

  test("a page that is not there is not called empty: the pages that are there are listed", async () => {
    const { page, errors } = await open("#/no-page?run=r1");
    await page.waitForSelector("main .failed");
    assert.match(await page.locator("main .failed").textContent(), /There is no page “no-page”\. The pages of this run are Health, .*Query\./);
    await page.locator("main .failed a", { hasText: "Kernels" }).click();
    await page.waitForSelector('[data-panel="kernels"]');
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("what if: candidates are put together by a click, changes are in the address, faults come with a hint", async () => {
    const { page, errors } = await open("#/what_if?run=r1");
    await page.waitForSelector(".headline");
    assert.match(await page.locator(".headline").textContent(), /A step takes 10\.0 ms in the mean, bound by stream 7/);
    const tries = page.locator(".query-tools button[aria-pressed]");
    assert.deepEqual(await tries.allTextContents(), ["scale kernel:gemm=0.5", "no-waits"]); // the third is worth nothing
    await tries.nth(0).click();
    await page.waitForFunction(() => document.querySelector(".headline b")?.textContent === "8.00 ms to 9.00 ms");
    assert.match(await page.locator(".headline").textContent(), /1\.11× to 1\.25× as fast.*then bound/);
    await tries.nth(1).click();
    await page.waitForFunction(() => document.querySelector("textarea")?.value === "scale kernel:gemm=0.5\nno-waits");
    assert.equal((await params(page)).changes, "scale kernel:gemm=0.5\nno-waits");
    await page.waitForSelector('[data-table="what_if.changes"]');
    await tries.nth(0).click();
    await page.waitForFunction(() => document.querySelector("textarea")?.value === "no-waits");
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(errors, []);
    await page.locator("textarea").fill("nonsense <b>");
    await page.locator("textarea").press("Control+Enter");
    await page.waitForSelector(".failed");
    assert.match(await page.locator(".failed").textContent(), /is no change.*Changes are.*Look at the names with Operators, Kernels$/);
    await page.locator(".failed a", { hasText: "Kernels" }).click();
    await page.waitForSelector('[data-panel="kernels"]');
    assert.match(await hash(page), /#\/kernels\?run=r1$/);
    await page.close();
  });

  test("what if: the menu comes back to the changes, a wrong change on the timeline has ways out, a network is of the command line", async () => {
    const { page } = await open("#/what_if?run=r1&changes=no-waits");
    await page.waitForSelector(".headline b");
    await page.locator("nav.views a", { hasText: "Query" }).click();
    await page.locator("textarea[aria-label='SQL']").waitFor();
    await page.locator("nav.views a", { hasText: "What if" }).click();
    await page.waitForSelector(".headline b");
    assert.deepEqual(await params(page), { run: "r1", changes: "no-waits" });
    assert.equal(await page.getByText("--topology").count(), 0);
    await page.locator("textarea").fill("ranks 64");
    await page.locator("button.run").click();
    assert.match(await page.locator("p", { hasText: "--topology" }).textContent(), /by the command line alone/);
    await page.goto(`${stub.address}${TIMELINE}&changes=nonsense&colors=x`);
    await page.waitForSelector(".failed");
    await page.locator(".failed a", { hasText: "mend the changes" }).click();
    await page.waitForFunction(() => document.querySelector("textarea")?.value === "nonsense");
    await page.goBack();
    await page.locator(".failed a", { hasText: "without changes" }).click();
    await settled(page);
    assert.equal((await params(page)).changes, undefined);
    await page.close();
  });

  test("what if: the predicted run is drawn beside the recording, and stays while one moves", async () => {
    const { page, errors } = await open("#/what_if?run=r1&changes=no-waits");
    const from = stub.asked.length;
    await page.locator("a", { hasText: "beside the recording" }).click();
    await settled(page);
    assert.match(await page.locator(".banner").textContent(), /predicted with no-waits/);
    assert.match(await page.locator("[data-gain]").textContent(), /10.0 ms recorded, 8.00 ms to 9.00 ms predicted, 1.11 to 1.25× as fast/);
    const names = await page.locator(".tl-names li").allTextContents();
    assert.match(names[0], /rank 0(?!, predicted)/);
    assert.match(names[1], /rank 0, predicted/);
    assert.match(names[3], new RegExp(`predicted ${names[2].replace(/[▾▸] ?/, "").replace(/[()]/g, "\\$&")}`));
    assert.equal(await page.locator(".tl-ruler").evaluate((ruler) => ruler.clientHeight), 60); // a row of steps for each
    await plot(page).hover();
    await page.mouse.wheel(0, 100_000);
    await page.waitForFunction(() => [...document.querySelectorAll("[data-rank]")].some((one) => one.textContent.includes("rank 3, predicted")));
    await page.keyboard.press("w");
    await settled(page);
    assert.equal((await params(page)).changes, "no-waits");
    assert.ok(tilesAsked(from).length > 0 && tilesAsked(from).every((query) => query.changes === "no-waits"));
    await page.locator(".banner a", { hasText: "the recording alone" }).click();
    await settled(page);
    assert.equal((await params(page)).changes, undefined);
    assert.equal(tilesAsked(0).at(-1).changes, undefined);
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("what is not made yet, or waits for its turn, is asked for again", async () => {
    const unready = { tiles: 2, slice: 2, search: 2, selection: 2, phases: 2, query: 2, what_if: 2 };
    const other = await startStub({ unready });
    const { page, errors } = await open(NEAR, { stub: other });
    await settled(page);
    await plot(page).click({ position: { x: 100, y: 24 + 1 + 2 * 18 + 9 } });
    await page.waitForSelector("[data-slice-name]");
    assert.equal(await page.locator("[data-slice-name]").textContent(), "aten::addmm");
    await page.evaluate(() => (location.hash = "#/what_if?run=r1"));
    await page.waitForSelector(".headline");
    await page.evaluate(() => (location.hash = "#/query?run=r1&sql=select+1"));
    await page.waitForSelector('[data-table="query"]');
    assert.deepEqual([unready.tiles, unready.slice, unready.query, unready.what_if], [0, 0, 0, 0]);
    assert.equal(await page.locator(".failed").count(), 0);
    assert.deepEqual(errors.filter((text) => !text.includes("503")), []); // the browser tells of these by itself
    await page.close();
    await other.close();
  });

  test("compare: another run is chosen, waited for, and turned round; one run alone says how two are opened", async () => {
    const run = (id) => ({ id, name: `${id} ${HOSTILE}`, path_shown: "/data", state: "ready", error: null, revision: 1 });
    const other = await startStub({ runs: [run("r1"), run("r2")], openings: 2 });
    const { page, errors } = await open("#/diff?run=r1", { stub: other });
    await page.locator("select").selectOption("r2");
    await page.waitForSelector('[data-panel="diff"]');
    const panel = page.locator('[data-panel="diff"]');
    assert.equal(await page.locator("h2", { hasText: "What changed" }).count(), 1);
    assert.deepEqual(await panel.locator(".figures dt").allTextContents(), ["step of r2"]);
    const falls = await panel.locator(".falls .row").evaluateAll((rows) => rows.map((row) => [row.querySelector(".name").textContent.slice(0, 14), row.className, row.querySelector(".value").textContent]));
    assert.deepEqual(falls, [
      ["A step of r2", "row whole", "10.0 ms"],
      ["Compute kernel", "row class longer", "+5.00 ms 166.7 %"],
      [`gemm ${HOSTILE}`.slice(0, 14), "row inside longer", "+6.00 ms 200.0 %"],
      ["The rest of it", "row inside shorter", "−1.00 ms -33.3 %"],
      ["Memory copies,", "row class shorter", "−2.00 ms -66.7 %"],
      ["A step of r1", "row whole", "13.0 ms"],
    ]);
    // Each class begins where the one before it ended, and its parts end where it does.
    const bars = await panel.locator(".falls .track > span").evaluateAll((all) => all.map((one) => [one.offsetLeft, one.offsetLeft + one.offsetWidth]));
    const near = (x, y) => assert.ok(Math.abs(x - y) <= 2, `${x} is not ${y}`);
    near(bars[0][1], bars[1][0]);
    near(bars[2][0], bars[1][0]);
    near(bars[3][0], bars[1][1]);
    near(bars[4][1], bars[1][1]);
    near(bars[4][0], bars[5][1]);
    assert.equal((await params(page)).before, "r2");
    await page.locator("button", { hasText: "the other way round" }).click();
    await page.waitForFunction(() => document.querySelector('[data-panel="diff"] dt')?.textContent === "step of r1");
    assert.equal((await params(page)).run, "r2");
    assert.deepEqual(errors, []);
    await page.close();
    await other.close();
    const alone = await open("#/diff?run=r1");
    await alone.page.waitForSelector(".empty");
    assert.match(await alone.page.locator(".empty").textContent(), /view --each BEFORE AFTER/);
    await alone.page.close();
  });

  test("a run that was opened anew is asked for in its new state", async () => {
    const runs = [{ id: "r1", name: "job", path_shown: "/data", state: "ready", error: null, revision: 1 }];
    const other = await startStub({ runs });
    const { page } = await open("#/health?run=r1", { stub: other });
    await page.waitForSelector('[data-panel="overview"]');
    runs[0].revision = 2; // the page hears of it by being refused, long before it asks for the runs again
    await page.evaluate(() => (location.hash = "#/what_if?run=r1"));
    await page.waitForSelector(".headline", { timeout: 3000 });
    assert.equal(await page.locator(".failed").count(), 0);
    assert.ok(other.asked.some((one) => one.name === "what_if" && one.query.revision === "2"));
    await page.close();
    await other.close();
  });

  test("a row of a table and a finding lead to their moment on the timeline", async () => {
    const report = sample();
    const column = (name, unit) => ({ name, type: "integer", unit, meaning: "" });
    const gaps = { columns: [column("rank", ""), column("start_ns", "ns"), column("idle_ns", "ns")], rows: [[3, "BIG", 2_000_000], [99, 5, 1]] };
    report.answers.fresh = { summary: "New?", scalars: {}, tables: { gaps }, findings: [{ id: "f", cause: "c", sentence: "It is late", where: { rank: 2, t_ns: "BIG" } }] };
    // an integer that a double cannot hold: 1790857026000000000 is where the stub's ranks begin
    const text = JSON.stringify(report).replaceAll('"BIG"', "1790857028000000000");
    const other = await startStub({ report: text });
    const { page, errors } = await open("#/more?run=r1", { stub: other });
    const links = page.locator('[data-table="fresh.gaps"] td.moment a');
    await links.first().click();
    await settled(page);
    assert.equal((await params(page)).range, "2000000000-2002000000");
    assert.deepEqual([(await params(page)).from, (await params(page)).to, (await params(page)).at], ["1998800000", "2003200000", undefined]);
    await page.goBack();
    await links.nth(1).click();
    await page.waitForSelector(".banner");
    assert.match(await page.locator(".banner").textContent(), /not on this timeline/);
    await page.goto(`${other.address}#/health?run=r1`);
    await page.locator('[data-finding="f"] a', { hasText: "show on the timeline" }).click();
    await settled(page);
    assert.equal((await params(page)).marks, "2000000000");
    assert.deepEqual(errors, []);
    await page.close();
    await other.close();
  });

  test("what is typed the moment the field is there stays", async () => {
    const { page, errors } = await open("#/health?run=r1");
    await page.waitForSelector('[data-panel="overview"]');
    await page.evaluate(() => {
      const watch = new MutationObserver(() => {
        const field = document.querySelector("textarea");
        if (field === null) return;
        watch.disconnect();
        field.value = "SELECT 1";
        field.dispatchEvent(new Event("input", { bubbles: true }));
      });
      watch.observe(document.body, { childList: true, subtree: true });
      location.hash = "#/query?run=r1";
    });
    await page.waitForSelector("textarea");
    await page.waitForTimeout(300); // an effect that came late would have emptied it by now
    await page.locator("textarea").press("Control+Enter");
    await page.waitForSelector('[data-table="query"]');
    assert.equal((await params(page)).sql, "SELECT 1");
    assert.deepEqual(errors, []);
    await page.close();
  });

  test("? lists the keys, brackets and letters go between the views, light and dark differ", async () => {
    const { page, errors } = await open("#/health?run=r1");
    await page.waitForSelector('[data-panel="overview"]');
    await page.keyboard.press("?");
    assert.match(await page.locator("dialog[open]").textContent(), /Shift \+ drag/);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelector("dialog") === null);
    await page.keyboard.press("]");
    assert.match(await hash(page), /#\/steps/);
    await page.keyboard.press("t");
    await settled(page);
    const [light, rects] = [await plot(page).evaluate(() => getComputedStyle(document.body).backgroundColor), await facts(page)];
    await page.locator("button.theme", { hasText: "dark" }).click();
    await settled(page);
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), light);
    assert.equal((await facts(page)).rects, rects.rects);
    await page.keyboard.press("[");
    assert.match(await hash(page), /#\/files/);
    assert.deepEqual(errors, []);
    await page.close();
  });
});
