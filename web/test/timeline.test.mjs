// The parts of the timeline that need no browser: the math of the view, tiles, what is kept and asked for, what a frame
// draws, where lanes lie, and the state in the address.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { load } from "./load.mjs";
import { encodeTiles } from "./stub.mjs";

const view = await load("timeline/view.ts");
const { decodeTiles, SINGLE } = await load("timeline/tile.ts");
const { TileStore } = await load("timeline/tiles.ts");
const { Frame, MOST, fillFrame, pieces } = await load("timeline/frame.ts");
const { bandsBetween, layOut, foldedAtFirst, ROW } = await load("timeline/lanes.ts");
const { readState, writeState } = await load("timeline/state.ts");
const { fitName, plainName, shortName } = await load("timeline/text.ts");
const { Layer } = await load("timeline/layers.ts");
const { axisOf, drawCounters } = await load("timeline/layers_draw.ts");
const { drawRuler } = await load("timeline/overlay.ts");
const { sceneOf } = await load("timeline/scene.ts");
const { counterText } = await load("timeline/counter_text.ts");
const route = await load("data/route.ts");
const { formatTick } = await load("draw/format.ts");

const arrayBuffer = (buffer) => buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.byteLength);
const rect = (start, duration, more = {}) => [start, duration, more.slice ?? 1, more.count ?? 1, more.name ?? 0, more.row ?? 0, more.class ?? 4, more.fill ?? 255];
const tileOf = (lane, rects, names = {}) => decodeTiles(arrayBuffer(encodeTiles([[lane, rects]], names))).tiles[0];
/** A canvas that keeps what is written on it and filled; letters are 6 px wide. */
const canvas = () => {
  const [texts, boxes] = [[], []];
  const context = { texts, boxes, measureText: (text) => ({ width: 6 * text.length }), fillText: (text, x, y) => texts.push({ text, x, y }), fillRect: (...box) => boxes.push(box) };
  return Object.assign(context, Object.fromEntries(["clearRect", "beginPath", "moveTo", "lineTo", "fill"].map((name) => [name, () => undefined])));
};
const index = (ranks, rows = 2) => ({
  end: 1e9,
  ranks: Array.from({ length: ranks }, (_, rank) => ({ rank, file: "", clock: "", steps: { start: [], end: [], host_start: [], name: [] } })),
  lanes: Array.from({ length: ranks * 3 }, (_, id) => ({ id, rank: Math.floor(id / 3), kind: id % 3 ? "stream" : "thread", name: `${id}`, group: "", rows, slices: id })),
});

describe("the view", () => {
  test("stays within the recording and not closer than can be seen", () => {
    assert.deepEqual(view.clamped({ from: -50, to: 50 }, 1000), { from: 0, to: 100 });
    assert.deepEqual(view.clamped({ from: 950, to: 1050 }, 1000), { from: 900, to: 1000 });
    assert.deepEqual(view.clamped({ from: -1e9, to: 1e9 }, 1000), { from: 0, to: 1000 });
    const close = view.clamped({ from: 500, to: 501 }, 1000);
    assert.equal(close.to - close.from, view.LEAST_NS);
    assert.deepEqual(view.clamped({ from: 0, to: 0 }, 0), { from: 0, to: view.LEAST_NS });
  });

  test("zooming keeps the time under the pointer, and there and back is where one was", () => {
    const seen = { from: 2e8, to: 6e8 };
    const closer = view.zoomed(seen, 0.5, 3e8, 1e9);
    assert.equal(view.pixelOf(closer, 1000, 3e8), view.pixelOf(seen, 1000, 3e8));
    assert.deepEqual(view.zoomed(closer, 2, 3e8, 1e9), seen);
  });

  test("times and pixels are each other's inverse beyond 2^32 ns", () => {
    const seen = { from: 2 ** 52, to: 2 ** 52 + 4000 };
    for (const pixel of [0, 1, 500, 999]) assert.ok(Math.abs(view.pixelOf(seen, 1000, view.timeOf(seen, 1000, pixel)) - pixel) < 0.3);
  });

  test("levels are powers of two, never coarser than the screen, and tiles cover what is seen", () => {
    for (const length of [20, 1000, 1500, 123456, 1e9]) {
      const seen = { from: 333, to: 333 + length };
      const level = view.levelFor(seen, 1000);
      assert.ok(level === 0 || (2 ** level <= length / 1000 && 2 ** (level + 1) > length / 1000), `${length}`);
      const range = view.tilesIn(seen, level, 2e9);
      assert.ok(range.first * view.tileLength(level) <= seen.from && (range.last + 1) * view.tileLength(level) >= seen.to);
      assert.ok(range.last - range.first <= 3, `${length}: ${range.last - range.first}`);
    }
  });

  test("panning within a tile wants the same tiles; the margin ends with the recording", () => {
    const at = (from) => view.tilesIn({ from, to: from + 1e6 }, view.levelFor({ from, to: from + 1e6 }, 1000), 1e9);
    assert.deepEqual(at(1_100_000), at(1_200_000));
    assert.deepEqual(view.withMargin({ level: 0, first: 0, last: 0 }, 1024), { level: 0, first: 0, last: 0 });
    assert.deepEqual(view.withMargin({ level: 0, first: 1, last: 1 }, 1e6), { level: 0, first: 0, last: 2 });
  });

  test("lines of the ruler are round and say what tells them apart", () => {
    const { step, times } = view.ticks({ from: 1e9, to: 1e9 + 1e4 }, 1000, 130);
    assert.equal(step, 2000);
    assert.deepEqual(times, [1e9, 1e9 + 2000, 1e9 + 4000, 1e9 + 6000, 1e9 + 8000, 1e9 + 1e4]);
    assert.equal(new Set(times.map((time) => formatTick(time, step))).size, times.length);
    assert.equal(formatTick(1_002_000_000, 2_000_000), "1.002 s");
    assert.equal(formatTick(0, 5), "0");
    assert.equal(formatTick(150, 50), "150 ns");
  });
});

describe("a tile", () => {
  test("is read column by column, lane after lane", () => {
    const data = encodeTiles([[3, [rect(1, 2, { slice: 7, name: 9, row: 1, fill: 200 }), rect(5, 6)]], [9, []], [12, [rect(2 ** 52 + 1, 3, { count: 4, class: 5 })]]], { 9: "aten::mm" });
    const { tiles, names } = decodeTiles(arrayBuffer(data));
    assert.deepEqual(tiles.map((tile) => [tile.lane, tile.count]), [[3, 2], [9, 0], [12, 1]]);
    assert.deepEqual([tiles[0].start[1], tiles[0].duration[0], tiles[0].slice[0], tiles[0].name[0], tiles[0].row[0], tiles[0].fill[0]], [5, 2, 7, 9, 1, 200]);
    assert.deepEqual([tiles[2].start[0], tiles[2].merged[0], tiles[2].kind[0]], [2 ** 52 + 1, 4, 5]);
    assert.deepEqual(names, { 9: "aten::mm" });
  });

  test("that is cut, foreign or lies about its size is refused", () => {
    const data = arrayBuffer(encodeTiles([[0, [rect(1, 2), rect(3, 4)]]], { 1: "a" }));
    for (const length of [0, 7, 15, 16, 40, data.byteLength - 1]) assert.throws(() => decodeTiles(data.slice(0, length)), undefined, `${length}`);
    assert.throws(() => decodeTiles(new ArrayBuffer(64)), /no tile/);
    const lies = data.slice(0);
    new DataView(lies).setUint32(20, 1e6, true); // more rectangles in the lane than in the tile
    assert.throws(() => decodeTiles(lies), /more rectangles/);
    const large = data.slice(0);
    new DataView(large).setUint32(8, 0xffffffff, true);
    assert.throws(() => decodeTiles(large), /its heading says/);
  });
});

describe("the store", () => {
  const wait = () => new Promise((resolve) => setTimeout(resolve, 5));
  const store = (most) => {
    const asked = [];
    const made = new TileStore(
      (of, signal) => {
        const one = { ...of, signal };
        asked.push(one);
        return new Promise((resolve, reject) => {
          one.answer = () => resolve(arrayBuffer(encodeTiles(of.lanes.map((lane) => [lane, [rect(of.from, 1)]]), {})));
          one.fail = () => reject(new Error("away"));
        });
      },
      () => undefined,
      most,
    );
    return { made, asked };
  };
  const range = (level, first, last = first) => ({ level, first, last });

  test("asks once for each tile, all lanes in one question", async () => {
    const { made, asked } = store();
    assert.equal(made.want([{ range: range(3, 1, 2), lanes: [0, 5] }]), 4);
    assert.equal(made.want([{ range: range(3, 1, 2), lanes: [0, 5] }]), 0);
    assert.deepEqual(asked.map(({ from, to, px, lanes }) => [from, to, px, lanes]), [[8192, 16384, 1024, [0, 5]], [16384, 24576, 1024, [0, 5]]]);
    asked[0].answer();
    await wait();
    assert.equal(made.get(3, 1, 5).start[0], 8192);
    assert.equal(made.get(3, 2, 5), undefined);
    assert.equal(made.want([{ range: range(3, 1), lanes: [0, 5, 6] }]), 1);
    assert.deepEqual(asked[2].lanes, [6]);
  });

  test("does not wait for what is not wanted any more", async () => {
    const { made, asked } = store();
    made.want([{ range: range(3, 1), lanes: [0] }]);
    made.want([{ range: range(2, 1), lanes: [0] }]);
    assert.equal(asked[0].signal.aborted, true);
    assert.equal(asked[1].signal.aborted, false);
    asked[0].answer();
    await wait();
    assert.equal(made.get(3, 1, 0), undefined);
  });

  test("never more than four questions at once", () => {
    const { made, asked } = store();
    made.want([{ range: range(0, 0, 40), lanes: [0] }]);
    assert.equal(asked.length, 4);
  });

  test("forgets what was used longest ago", async () => {
    const { made, asked } = store(3 * 1032);
    for (const tile of [0, 1, 2]) {
      made.want([{ range: range(0, tile), lanes: [0] }]);
      asked.at(-1).answer();
      await wait();
    }
    made.get(0, 0, 0);
    made.want([{ range: range(0, 3), lanes: [0] }]);
    asked.at(-1).answer();
    await wait();
    assert.deepEqual([0, 1, 2, 3].map((tile) => made.get(0, tile, 0) !== undefined), [true, false, true, true]);
    assert.ok(made.keptBytes <= 3 * 1032);
  });

  test("a failed question is said and not asked again at once", async () => {
    const { made, asked } = store();
    made.want([{ range: range(0, 0), lanes: [0] }]);
    asked[0].fail();
    await wait();
    assert.match(String(made.error), /away/);
    assert.equal(made.want([{ range: range(0, 0), lanes: [0] }]), 0);
    made.close();
  });
});

describe("layers", () => {
  const layer = () => {
    const asked = [];
    const made = new Layer(
      (of, signal) => new Promise((resolve, reject) => asked.push({ ...of, signal, answer: (ids) => resolve(new Map(ids.map((id) => [id, `${of.from}:${id}`]))), fail: () => reject(new Error("away")) })),
      () => undefined,
    );
    return { made, asked };
  };
  const range = (first, last, level = 3) => ({ level, first, last });
  const wait = () => new Promise((resolve) => setTimeout(resolve, 5));

  test("are asked for what is not here, once, and what is known of another stretch stays until then", async () => {
    const { made, asked } = layer();
    made.want(range(0, 1), [1, 2]);
    made.want(range(0, 1), [1, 2]);
    assert.deepEqual(asked.map(({ from, to, px, ids }) => ({ from, to, px, ids })), [{ from: 0, to: 2 * 8 * 1024, px: 2048, ids: [1, 2] }]);
    asked[0].answer([1]); // of 2 there is nothing
    await wait();
    made.want(range(0, 1), [1, 2]);
    assert.equal(asked.length, 1);
    made.want(range(0, 1), [1, 3]);
    assert.deepEqual(asked[1].ids, [3]);
    made.want(range(4, 4), [1]);
    assert.equal(asked[1].signal.aborted, true);
    assert.equal(made.get(1), "0:1");
    asked[2].answer([1]);
    await wait();
    assert.equal(made.get(1), `${4 * 8 * 1024}:1`);
    made.want(range(4, 4), []);
    assert.equal(asked.length, 3);
  });

  test("that fail are not asked for again at once", async () => {
    const { made, asked } = layer();
    made.want(range(0, 0), [1]);
    asked[0].fail();
    await wait();
    made.want(range(0, 0), [1]);
    assert.equal(asked.length, 1);
    assert.match(String(made.error), /away/);
  });
});

describe("a frame", () => {
  const lanes = index(1, 3);
  const layout = layOut(lanes, { ranks: new Set(), lanes: new Set() });
  const band = layout.bands[1];
  const screen = (from, to) => ({ view: { from, to }, width: 1000, top: 0, height: 600 });
  const drawn = (parts, at) => {
    const frame = new Frame();
    fillFrame(frame, parts, at);
    return frame;
  };
  const boxes = (frame) => Array.from({ length: frame.count }, (_, i) => [...frame.box.slice(4 * i, 4 * i + 4)].map((value) => Math.round(value * 10) / 10));

  test("draws what is in view, each tile only its own part", () => {
    const long = rect(500, 1000, { slice: 4 });
    const tile = tileOf(0, [rect(10, 100), long, rect(5000, 10)]);
    const frame = drawn([{ band, tile, from: 0, to: 1024 }, { band, tile, from: 1024, to: 2048 }], screen(0, 2000));
    assert.deepEqual(boxes(frame), [[5, band.top, 49, ROW - 1], [250, band.top, 262, ROW - 1], [512, band.top, 237, ROW - 1]]);
    assert.equal(frame.hit(300, band.top + 3), 1);
    assert.equal(frame.hit(900, band.top + 3), -1);
    assert.equal(frame.isSingle(1), true);
    assert.deepEqual(frame.wholeOf(1, 1000), { left: 250, right: 750 });
  });

  test("slices of no length are seen, rows beyond those of a folded lane are not", () => {
    const tile = tileOf(0, [rect(1024, 0), rect(30, 5, { row: 3 })]);
    const frame = drawn([{ band, tile, from: 0, to: 1024 }, { band, tile, from: 1024, to: 2048 }], screen(0, 2000));
    assert.equal(frame.count, 1);
    assert.ok(frame.box[2] > 0.5);
  });

  test("never has more rectangles than may be drawn; neighbors are joined and counted", () => {
    const rects = Array.from({ length: 60_000 }, (_, i) => rect(i * 10, 5, { row: i % 3, slice: i, class: i % 9 }));
    const frame = drawn([{ band, tile: tileOf(0, rects), from: 0, to: 600_000 }], screen(0, 600_000));
    assert.ok(frame.count > 100 && frame.count <= MOST, `${frame.count}`);
    const counted = Array.from(frame.merged.slice(0, frame.count)).reduce((sum, count) => sum + count, 0);
    assert.equal(counted, 60_000);
    assert.ok(frame.coarse > 0);
  });

  test("draws what coarser or finer tiles know while its own are on their way", () => {
    const kept = new Map([["5/0", tileOf(0, [rect(0, 10)])], ["2/2", tileOf(0, [rect(0, 10)])]]);
    const get = (level, at, lane) => (lane === 0 ? kept.get(`${level}/${at}`) : undefined);
    const coarser = pieces([band], { level: 4, first: 1, last: 1 }, get);
    assert.deepEqual([coarser.missing, coarser.pieces.length, coarser.pieces[0].from], [true, 1, 1024 * 16]);
    kept.delete("5/0");
    const finer = pieces([band], { level: 3, first: 1, last: 1 }, get);
    assert.deepEqual([finer.pieces.length, finer.pieces[0].from, finer.pieces[0].to], [1, 8192, 8192 + 4096]);
  });

  test("several merged slices are none of which details can be asked", () => {
    const frame = drawn([{ band, tile: tileOf(0, [rect(0, 500, { slice: SINGLE, count: 9 })]), from: 0, to: 1024 }], screen(0, 1000));
    assert.equal(frame.isSingle(0), false);
  });
});

describe("lanes", () => {
  test("lie below their rank; folded ranks are one line with the busiest stream, folded lanes one row", () => {
    const all = layOut(index(2), { ranks: new Set([1]), lanes: new Set([0]) });
    assert.deepEqual(all.bands.map((band) => [band.kind, band.rank, band.lane?.id ?? null, band.rows]), [
      ["rank", 0, null, 1],
      ["lane", 0, 0, 1],
      ["lane", 0, 1, 2],
      ["lane", 0, 2, 2],
      ["rank", 1, 5, 1],
    ]);
    for (let i = 1; i < all.bands.length; i++) assert.ok(all.bands[i].top >= all.bands[i - 1].top + all.bands[i - 1].height);
    assert.ok(all.height >= all.bands.at(-1).top + all.bands.at(-1).height);
  });

  test("counters are two rows high; what is of the machine has a heading behind the ranks, folded at first", () => {
    const of = index(2);
    const counter = (id, rank) => ({ id, rank, kind: "counter", name: "", group: "", rows: 0, slices: 0, low: 0, high: 1 });
    of.lanes.push(counter(6, 1), counter(7, 2));
    const folded = foldedAtFirst(of);
    assert.deepEqual([...folded.ranks], [2]);
    const all = layOut(of, folded);
    assert.deepEqual(all.bands.slice(4).map((band) => [band.kind, band.rank, band.lane?.id ?? null, band.rows]), [
      ["rank", 1, null, 1],
      ["lane", 1, 3, 2],
      ["lane", 1, 4, 2],
      ["lane", 1, 5, 2],
      ["lane", 1, 6, 2],
      ["rank", 2, null, 1], // a counter is no lane that stands for all
    ]);
    assert.equal(all.ofLane.get(7), all.bands.at(-1));
    assert.equal(all.ofLane.get(4).lane.id, 4);
    assert.deepEqual(pieces(all.bands.slice(-2), { level: 0, first: 0, last: 0 }, () => assert.fail("a counter has no tiles")), { pieces: [], missing: false });
    assert.deepEqual([axisOf({ low: 3, high: 9 }), axisOf({ low: -4, high: -1 }), axisOf({ low: 0, high: 0 })], [
      { floor: 0, top: 9 },
      { floor: -4, top: 0 },
      { floor: 0, top: 1 },
    ]);
    assert.deepEqual(["bytes", "bytes/s", "cores", "", undefined].map((unit) => counterText(2048, unit)), ["2.00 KiB", "2.00 KiB/s", "2,048 cores", "2,048", "2,048"]);
  });

  test("of a prediction lie below the recorded ones, few rows of each at first", () => {
    const of = index(4, 9);
    of.ranks.forEach((rank, at) => (rank.predicted = at >= 2));
    for (const lane of of.lanes) lane.name = `${lane.id % 3}`;
    const all = layOut(of, foldedAtFirst(of));
    const [first, second] = [all.bands.slice(0, 8), all.bands.slice(8)].map((bands) => bands.map((band) => [band.kind, band.rank, band.lane?.id ?? null]));
    assert.deepEqual(first, [["rank", 0, null], ["rank", 2, null], ["lane", 0, 0], ["lane", 2, 6], ["lane", 0, 1], ["lane", 2, 7], ["lane", 0, 2], ["lane", 2, 8]]);
    assert.deepEqual(second.map(([, rank]) => rank), [1, 3, 1, 3, 1, 3, 1, 3]);
    assert.deepEqual(all.bands.slice(2, 4).map((band) => [band.rows, band.folded]), [[3, true], [3, true]]);
    const unfolded = layOut(of, { ranks: new Set([2]), lanes: new Set() });
    assert.deepEqual(unfolded.bands.slice(0, 4).map((band) => [band.rank, band.rows]), [[0, 1], [2, 1], [0, 9], [0, 9]]);
  });

  test("lines of steps stand in the lanes of their own rank: on threads where the host began, on streams where the step did", () => {
    const of = index(2);
    of.ranks.forEach((rank, at) => (rank.steps = { start: [100 + at], end: [200], host_start: [50 + at], name: ["0"] }));
    const layout = layOut(of, { ranks: new Set(), lanes: new Set() });
    const state = { view: { from: 0, to: 1000 }, top: 0, slice: null, range: null, find: "", path: false, marks: [], folded: {} };
    const none = { get: () => undefined };
    const scene = sceneOf({ state, layout, bands: layout.bands, frame: new Frame(), width: 1000, height: 600, details: null, found: [], steps: [], ranks: of.ranks, layers: { phases: none, counters: none, path: none } });
    const ofBand = new Map(scene.boundaries.map(({ x, y }) => [y, x]));
    assert.deepEqual(layout.bands.map((band) => [band.rank, band.lane?.kind ?? null, ofBand.get(band.top)]), [0, 1].flatMap((rank) => [
      [rank, null, 50 + rank],
      [rank, "thread", 50 + rank],
      [rank, "stream", 100 + rank],
      [rank, "stream", 100 + rank],
    ]));
  });

  test("the length of a stretch touches no text of the ruler, wherever it stands", () => {
    const view = { from: 0, to: 1_000_000 };
    for (let from = 0; from < 990_000; from += 7_000) {
      const context = canvas();
      drawRuler(context, { view, width: 1000, palette: {}, steps: [], marks: [], foundTimes: [], range: { from, to: from + 10_000 } });
      const texts = context.texts.map(({ text, x }) => ({ text, left: x, right: x + 6 * text.length })).sort((a, b) => a.left - b.left);
      assert.ok(texts.some(({ text }) => text === "10.0 µs"), JSON.stringify(texts));
      for (let i = 1; i < texts.length; i++) assert.ok(texts[i].left > texts[i - 1].right, JSON.stringify(texts));
    }
  });

  test("a counter ends where its answer does: what comes after was not asked for", () => {
    const context = canvas();
    const lane = { low: 0, high: 10 };
    const points = { id: 0, start: [0, 100], low: [1, 2], high: [1, 2], end: 400 };
    drawCounters(context, [{ y: 0, height: 36, lane, points }], { view: { from: 0, to: 1000 }, width: 1000, palette: {} });
    assert.equal(Math.max(...context.boxes.map(([x, , wide]) => x + wide)), 400);
  });

  test("in view are found among thousands", () => {
    const all = layOut(index(2000), { ranks: new Set(), lanes: new Set() });
    const seen = bandsBetween(all, 100_000, 100_600);
    assert.deepEqual(seen, all.bands.filter((band) => band.top + band.height >= 100_000 && band.top < 100_600));
    assert.ok(seen.length > 5 && seen.length < 40);
  });
});

describe("the address", () => {
  test("carries every state there and back", () => {
    const lanes = index(20);
    const state = {
      view: { from: 100, to: 5000 },
      top: 42,
      slice: { rank: 3, slice: 77 },
      range: { from: 5, to: 10, lanes: [1, 2, 3, 9] },
      find: "a&b=#%<שלום",
      path: true,
      marks: [5, 9],
      folded: { ranks: new Set([1, 2, 3, 7]), lanes: new Set([4]) },
    };
    const text = route.formatRoute({ view: "timeline", params: { ...writeState(state, lanes), run: "r1" } });
    const back = route.parseRoute(text);
    assert.equal(back.view, "timeline");
    assert.deepEqual(readState(back.params, lanes), state);
    state.folded = { ranks: new Set(), lanes: new Set() };
    assert.deepEqual(readState(writeState(state, lanes), lanes), state);
  });

  test("that is broken or hostile is the state at first", () => {
    const lanes = index(2);
    const usual = readState({}, lanes);
    assert.deepEqual(usual.view, { from: 0, to: 1e9 });
    assert.deepEqual(usual.folded, foldedAtFirst(lanes));
    assert.deepEqual(readState({ from: "NaN", to: "1e999", slice: "x", range: "9-3", marks: "<b>,,1e9", top: "-5" }, lanes), usual);
    assert.equal(route.parseRoute("#overview"), null);
    assert.equal(route.parseNumbers("0-999999999").length, 100_000);
    assert.deepEqual(route.parseNumbers("3-1,x,7,-,2-4"), [7, 2, 3, 4]);
    assert.equal(route.formatNumbers([5, 1, 2, 3, 3]), "1-3,5");
  });
});

test("names on the canvas are cut to their room, in one line and one direction", () => {
  const measure = (text) => text.length * 6;
  assert.equal(fitName("aten::addmm", 100, measure), "aten::addmm");
  assert.equal(fitName("aten::addmm", 40, measure), "aten:…");
  assert.equal(fitName("aten::addmm", 5, measure), "");
  assert.equal(shortName("void at::native::reduce_kernel<512, 1, at::native::Op<float>>(at::native::Op<float>)"), "reduce_kernel<512, 1, at::native::Op<float>>");
  assert.equal(shortName("void dpsk::ep::internode::combine<false, 8>(int4*, float*, bool"), "combine<false, 8>"); // cut by the server
  assert.equal(shortName("void (anonymous namespace)::elementwise<4>(int)"), "elementwise<4>");
  assert.equal(shortName("cuda::expand(int4 const*, ca::F)"), "expand");
  for (const name of ["aten::linear", "dispatch(F)", "autograd::engine::evaluate_function: AddBackward0", "", "void", "a>b::c"]) {
    assert.equal(shortName(name), name);
  }
  const wide = (text) => [...text].reduce((sum, letter) => sum + (letter === "i" ? 2 : 9), 0);
  assert.ok(wide(fitName("mmmmmmmmiiiiiiiiiiiiiiii", 60, wide)) <= 60);
  assert.equal(plainName("a\u202eb\nc\u2066"), "a b c ");
  assert.equal(plainName("x".repeat(1e6)).length, 300);
});
