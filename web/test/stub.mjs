// A server that answers as “stepscope view” does, with made-up data: 8 ranks, each with two threads and three streams,
// more than a million slices that are never held but computed from their number. It keeps what it was asked.
import { createServer } from "node:http";
import { bundle } from "../build.mjs";
import { sample } from "./page.mjs";

export const END = 10_000_000_000; // ns
export const RANKS = 8;
export const HOSTILE = `</script><img src=x onerror=alert(1)>\u202eevil\u202c <b>שלום</b>`;
export const HUGE = "x".repeat(1_000_000);

const STEP = END / 100;
// rows of a lane: period in ns, share of it that is filled, class, name
const THREAD = [
  { period: STEP, share: 0.98, class: 2, name: "ProfilerStep" },
  { period: 2_000_000, share: 0.9, class: 0, name: "aten::linear" },
  { period: 1_000_000, share: 0.7, class: 0, name: "aten::addmm" },
  { period: 500_000, share: 0.4, class: 1, name: "cudaLaunchKernel" },
];
const LANES = [
  { kind: "thread", name: "thread 1 (pt_main)", rows: THREAD },
  { kind: "thread", name: "thread 2 (pt_autograd)", rows: [{ period: 1_000_000, share: 0.8, class: 0, name: "MmBackward0" }] },
  { kind: "stream", name: "stream 7", rows: [{ period: 125_000, share: 0.9, class: 4, name: "ampere_sgemm_128x64_tn" }] },
  { kind: "stream", name: "stream 20 (NCCL)", rows: [{ period: 20_000_000, share: 0.5, class: 5, name: "ncclDevKernel_AllReduce_Sum_bf16" }] },
  { kind: "stream", name: "stream 21", rows: [{ period: 3_000_000, share: 0.2, class: 6, name: "Memcpy HtoD" }] },
];
const ROWS = LANES.flatMap((lane, at) => lane.rows.map((row, depth) => ({ ...row, lane: at, depth })));
// A slice's number: its row and its place in it.
const PER_ROW = 1_000_000;
const countOf = (row) => Math.floor(END / row.period);
export const SLICES = RANKS * ROWS.reduce((sum, row) => sum + countOf(row), 0);

function sliceOf(rank, number) {
  const row = ROWS[Math.floor(number / PER_ROW)];
  const n = number % PER_ROW;
  if (row === undefined || n >= countOf(row)) return null;
  const special = row.name === "aten::linear" && n === 7 ? HOSTILE : row.name === "aten::linear" && n === 8 ? HUGE : row.name;
  return {
    name: special,
    start: Math.round(n * row.period + row.depth * 1000),
    duration: Math.round(row.period * row.share),
    lane: rank * LANES.length + row.lane,
    row: row.depth,
    class: row.class,
  };
}

const lanes = Array.from({ length: RANKS * LANES.length }, (_, id) => {
  const rank = Math.floor(id / LANES.length);
  const lane = LANES[id % LANES.length];
  const slices = lane.rows.reduce((sum, row) => sum + countOf(row), 0);
  return { id, rank, kind: lane.kind, name: lane.name, group: `python ${100 + rank}`, rows: lane.rows.length, slices };
});

// Counters stand behind all lanes of slices: one of the last rank, three of the machine.
const LAST = RANKS - 1;
const counter = (at, rank, name, unit) => ({ id: RANKS * LANES.length + at, rank, kind: "counter", name, group: "", unit, low: 0, high: 9, rows: 0, slices: 0 });
lanes.push(counter(0, LAST, "queue", ""), counter(1, RANKS, HOSTILE, "bytes"), counter(2, RANKS, "eth0 · sent", "bytes/s"), counter(3, RANKS, "cpu", "cores"));
export const COUNTERS = lanes.filter((lane) => lane.kind === "counter").map((lane) => lane.id);

const steps = {
  start: Array.from({ length: 100 }, (_, n) => n * STEP),
  end: Array.from({ length: 100 }, (_, n) => n * STEP + STEP * 0.98),
  host_start: Array.from({ length: 100 }, (_, n) => n * STEP),
  name: Array.from({ length: 100 }, (_, n) => String(n)),
};
const halved = Object.fromEntries(Object.entries(steps).map(([name, of]) => [name, name === "name" ? of : of.map((time) => time / 2)]));

function timeline(predicted = false) {
  const ranks = Array.from({ length: RANKS }, (_, rank) => ({ rank, file: `rank${rank}.json.gz`, clock: rank === 0 ? "reference" : "aligned", first_ns: "1790857026000000000", first: 0, last: END, rate: 1, bytes: rank === 7 ? null : 5000, steps }));
  const half = RANKS / 2; // with predictions the second half is what the first would be
  if (predicted) ranks.forEach((one, at) => Object.assign(one, { rank: at % half, predicted: at >= half, steps: at >= half ? halved : steps }));
  return { schema_version: 1, origin_ns: "1790857026000000000", end: END, ranks, lanes: predicted ? lanes.map((lane) => ({ ...lane, group: lane.group && `python ${100 + (lane.rank % half)}` })) : lanes };
}

const part = (query, ids) => ({ ...Object.fromEntries(["from", "to", "px"].map((name) => [name, Number(query.get(name))])), ids: query.get(ids).split(",").map(Number) });
const numbers = (count, of) => Array.from({ length: Math.max(0, count) }, (_, n) => of(n));

/** Each millisecond of it first on a row of the thread, then on a stream. */
function criticalPath(query) {
  const { from, to, ids } = part(query, "ranks");
  const half = 500_000;
  const first = Math.max(0, Math.floor(from / half));
  const last = Math.min(Math.ceil(to / half), first + 4000);
  const of = (write) => numbers(last - first, (n) => write(first + n));
  const ranks = ids.map((rank) => ({
    rank,
    of: "steps",
    start: of((n) => n * half),
    end: of((n) => (n + 1) * half),
    lane: of((n) => rank * LANES.length + (n % 2 ? 2 : 0)),
    row: of((n) => (n % 2 ? 0 : 2)),
    slice: of((n) => n),
    count: of(() => 1),
    class: of((n) => n % 2),
    evidence: of((n) => n % 2),
  }));
  return { classes: ["host_op", "compute"], class_meanings: ["the host ran", `a kernel ran ${HOSTILE}`], evidences: ["a", "b"], evidence_meanings: ["program order", "launch"], ranks };
}

function phases(query) {
  const { ids } = part(query, "ranks");
  const pieces = steps.start.flatMap((start) => [0, 1].map((half) => [start + half * STEP * 0.5, start + (half + 0.9) * STEP * 0.5, half + 1]));
  const [start, end, phase] = [0, 1, 2].map((at) => pieces.map((piece) => piece[at]));
  return { phases: ["other", "forward", "backward"], ranks: ids.map((rank) => ({ rank, start, end, phase })) };
}

/** 0, 1, 2 … over tenths of what is asked for; the fifth is a gap. */
function counters(query) {
  const { from, to, ids } = part(query, "lanes");
  const start = numbers(10, (n) => from + (n * (to - from)) / 10);
  const value = numbers(10, (n) => (n === 4 ? null : n));
  return { lanes: ids.map((id) => ({ id, start, low: value, high: value })) };
}

/** The rectangles of one lane: slices as they are, or in groups where they are narrower than 2 px. */
function rectsOf(id, from, to, px) {
  const rank = Math.floor(id / LANES.length);
  const pixel = (to - from) / px;
  const rects = [];
  ROWS.forEach((row, at) => {
    if (row.lane !== id % LANES.length) return;
    const group = Math.max(1, row.period < 2 * pixel ? Math.ceil((2 * pixel) / row.period) : 1);
    const first = Math.max(0, Math.floor((from - row.period) / row.period / group) * group);
    for (let n = first; n < countOf(row) && n * row.period + row.depth * 1000 < to; n += group) {
      const slice = sliceOf(rank, at * PER_ROW + n);
      const last = sliceOf(rank, at * PER_ROW + Math.min(n + group, countOf(row)) - 1);
      const end = last.start + last.duration;
      if (end < from) continue;
      const many = group > 1;
      const name = slice.name === HOSTILE ? 100 : slice.name === HUGE ? 101 : at;
      rects.push([slice.start, end - slice.start, many ? 0xffffffff : at * PER_ROW + n, many ? group : 1, name, row.depth, row.class, many ? Math.round(255 * row.share) : 255]);
    }
  });
  return rects;
}

export function encodeTiles(perLane, names) {
  const rects = perLane.flatMap(([, some]) => some);
  const padded = (bytes) => Math.ceil(bytes / 8) * 8;
  const trailer = Buffer.from(JSON.stringify({ names }));
  const sizes = [8, 8, 4, 4, 4, 2, 1, 1];
  const head = 16 + 8 * perLane.length;
  const data = Buffer.alloc(head + sizes.reduce((sum, size) => sum + padded(size * rects.length), 0) + trailer.length);
  data.writeUInt32LE(0x31545353, 0);
  data.writeUInt32LE(perLane.length, 4);
  data.writeUInt32LE(rects.length, 8);
  data.writeUInt32LE(trailer.length, 12);
  perLane.forEach(([lane, some], i) => {
    data.writeUInt32LE(lane, 16 + 8 * i);
    data.writeUInt32LE(some.length, 20 + 8 * i);
  });
  let at = head;
  sizes.forEach((size, column) => {
    const write = { 8: "writeDoubleLE", 4: "writeUInt32LE", 2: "writeUInt16LE", 1: "writeUInt8" }[size];
    rects.forEach((rect, i) => data[write](rect[column], at + i * size));
    at += padded(size * rects.length);
  });
  trailer.copy(data, at);
  return data;
}

function tiles(query) {
  const [from, to, px] = ["from", "to", "px"].map((name) => Number(query.get(name)));
  const wanted = query.get("lanes").split(",").map(Number);
  const perLane = wanted.map((id) => [id, rectsOf(id, from, to, px)]);
  const names = {};
  for (const [, rects] of perLane) {
    for (const rect of rects) {
      if (rect[1] / ((to - from) / px) >= 24) names[rect[4]] = rect[4] === 100 ? HOSTILE : rect[4] === 101 ? HUGE : ROWS[rect[4]].name;
    }
  }
  return encodeTiles(perLane, names);
}

const KERNELS = ROWS.findIndex((row) => row.class === 4);
const LAUNCHES = ROWS.findIndex((row) => row.class === 1);

function details(rank, number) {
  const slice = sliceOf(rank, number);
  if (slice === null) return null;
  const n = number % PER_ROW;
  const other = Math.floor(number / PER_ROW) === LAUNCHES ? ["kernel", KERNELS] : ["launch", LAUNCHES];
  const linked = other[1] * PER_ROW + Math.min(n, countOf(ROWS[other[1]]) - 1);
  const { row: _, class: __, ...link } = sliceOf(rank, linked);
  const collective = { kind: "collective", slice: number, rank: (rank + 1) % RANKS, ...sliceOf((rank + 1) % RANKS, number) };
  return {
    ...slice,
    category: "cpu_op",
    args: JSON.stringify({ ph: "X", args: { "Input Dims": [[8, 4096], [4096, 4096]], hostile: HOSTILE, "External id": 5 } }),
    parents: slice.row > 0 ? ["ProfilerStep#1", "aten::linear"].slice(0, slice.row) : [],
    step: String(Math.floor(slice.start / STEP)),
    links: ROWS[Math.floor(number / PER_ROW)].class === 5 ? [collective] : [{ kind: other[0], slice: linked, rank, ...link }],
    links_total: ROWS[Math.floor(number / PER_ROW)].class === 5 ? 900 : 1,
    stack: slice.class === 4 ? { of: "cudaLaunchKernel", own: false, frames: [`${HOSTILE}.py(7): forward`, "train.py(1): main"] } : { of: "", own: true, frames: [] },
  };
}

function search(text, limit) {
  const found = [];
  let total = 0;
  for (let rank = 0; rank < RANKS; rank++) {
    ROWS.forEach((row, at) => {
      const special = at === 1 && HOSTILE.toLowerCase().includes(text.toLowerCase()) && text.length > 2 ? [7] : [];
      const some = row.name.toLowerCase().includes(text.toLowerCase()) ? Array.from({ length: Math.min(limit, countOf(row)) }, (_, n) => n) : special;
      total += some === special ? special.length : countOf(row);
      for (const n of some) {
        if (found.length >= limit) break;
        found.push({ rank, slice: at * PER_ROW + n, ...sliceOf(rank, at * PER_ROW + n) });
      }
    });
  }
  return { total, found };
}

const text = (name) => ({ name, type: "text", unit: "", meaning: "" });
const figure = (value, unit = "") => ({ value, unit, meaning: "" });

const NO_CHANGE = { message: "'nonsense' is no change", hint: "Changes are: scale. Look at the names with stepscope report PATH --only operators,kernels" };

/** Without changes: a step of 10 ms, and candidates, of which the last is worth nothing; with: 8 to 9 ms. */
function whatIf(changes) {
  const scalars = { step_ns: figure(10_000_000, "ns"), binds: figure(`stream 7 ${HOSTILE}`) };
  const changed = { predicted_low_ns: figure(8_000_000, "ns"), predicted_high_ns: figure(9_000_000, "ns"), speedup_low: figure(1.11), speedup_high: figure(1.25) };
  const candidates = {
    columns: [text("change"), { name: "speedup_low", type: "real", unit: "", meaning: "" }, { name: "speedup_high", type: "real", unit: "", meaning: "" }],
    rows: [["scale kernel:gemm=0.5", 1.11, 1.25], ["no-waits", 1.01, 1.01], ["dataloader 0", 1, 1]],
  };
  const applied = { columns: [text("change")], rows: changes.split("\n").map((line) => [line]) };
  const tables = changes === "" ? { candidates } : { changes: applied };
  return { schema_version: 1, answers: { what_if: { summary: "Worth?", scalars: changes === "" ? scalars : { ...scalars, ...changed }, tables } } };
}

const whole = (name, label) => ({ name, type: "integer", unit: "ns", meaning: "", ...(label === undefined ? {} : { label }) });

/** 10 ms become 13: compute adds 5, of which one kernel 6, copies take 2. */
function difference(before, after) {
  const columns = [text("level"), text("class"), text("name"), text("name_b"), whole("a_ns", before), whole("b_ns", after), whole("delta_ns"), { name: "share", type: "real", unit: "ratio", meaning: "" }];
  const row = (level, of, name, a, b) => [level, of, name, null, a * 1e6, b * 1e6, (b - a) * 1e6, (b - a) / 3];
  const rows = [
    row("step", "all", "The step", 10, 13),
    row("class", "compute", "Compute kernels, all together", 6, 11),
    row("part", "compute", `gemm ${HOSTILE}`, 1, 7),
    row("rest", "compute", "The rest of it", 5, 4),
    row("class", "copy", "Memory copies, all together", 4, 2),
    row("class", "launch", "Launching, all together", 0, 0),
  ];
  const scalars = { step_a_ns: { ...figure(10_000_000, "ns"), label: `step of ${before}` } };
  return { schema_version: 1, answers: { diff: { summary: "Changed?", scalars, tables: { waterfall: { columns, rows } } } } };
}

/** Starts it; `asked` grows with every question: its name and its parameters. */
export async function startStub(options = {}) {
  const { script, style } = await bundle();
  const asked = [];
  const runs = options.runs ?? [{ id: "r1", name: "train.json", path_shown: "/data/train.json", state: "ready", error: null, revision: 1 }];
  let openings = options.openings ?? 0;
  const report = options.report ?? sample();
  const page = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>stepscope</title><link rel="stylesheet" href="app.css"></head><body><div id="app"></div><script src="app.js"></script></body></html>`;
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    if (url.pathname === "/favicon.ico") return void response.writeHead(204).end(); // browsers ask for it unasked
    if (!url.pathname.startsWith("/TOKEN/")) return void response.writeHead(404).end();
    const path = url.pathname.slice("/TOKEN/".length);
    const send = (status, type, body) => {
      response.writeHead(status, {
        "content-type": type,
        "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:",
      });
      response.end(body);
    };
    const json = (value, status = 200) => send(status, "application/json", JSON.stringify(value));
    if (path === "") return send(200, "text/html", page);
    if (path === "app.js") return send(200, "text/javascript", script);
    if (path === "app.css") return send(200, "text/css", style);
    if (!path.startsWith("api/")) return send(404, "text/plain", "");
    const name = path.slice(4);
    const query = url.searchParams;
    asked.push({ name, query: Object.fromEntries(query), at: Date.now() });
    if (name !== "runs" && !runs.some((run) => run.id === query.get("run"))) return json({ error: { message: "no such run", hint: "" } }, 404);
    const known = runs.find((run) => run.id === query.get("run"))?.revision;
    if (query.has("revision") && Number(query.get("revision")) !== known) return json({ error: { message: "opened anew", hint: "Ask again." } }, 409);
    const posted = async () => {
      const parts = [];
      for await (const part of request) parts.push(part);
      return request.method === "POST" && request.headers["x-stepscope"] === "1" ? Buffer.concat(parts).toString() : null;
    };
    // Somebody else is having it made, or too much is being made: the page asks again.
    if (name !== "runs" && options.unready?.[name] > 0) return options.unready[name]-- % 2 ? json({ state: "opening", share: 0.4 }, 202) : json({ error: { message: "busy", hint: "" } }, 503);
    switch (name) {
      case "runs":
        return json({ schema_version: 1, runs });
      case "answers":
        return openings-- > 0 ? json({ state: "opening", share: 0.4 }, 202) : typeof report === "string" ? send(200, "application/json", report) : json(report);
      case "timeline":
        if (/^nonsense/.test(query.get("changes") ?? "")) return json({ error: NO_CHANGE }, 400);
        return openings-- > 0 ? json({ state: "opening", share: 0.4 }, 202) : json(timeline(query.has("changes")));
      case "tiles":
        return send(200, "application/octet-stream", tiles(query));
      case "trace":
        return send(200, "application/octet-stream", Buffer.from(`trace of rank ${query.get("rank")}`));
      case "path":
        return json(criticalPath(query));
      case "phases":
        return json(phases(query));
      case "counters":
        return json(counters(query));
      case "slice": {
        const found = details(Number(query.get("rank")), Number(query.get("slice")));
        return found === null ? json({ error: { message: "there is no such slice", hint: "Reload the page." } }, 404) : json(found);
      }
      case "search":
        return json(search(query.get("q"), Number(query.get("limit"))));
      case "selection":
        return json({
          cut: false,
          rows: [
            { name: HOSTILE, class: 0, count: 3, total_ns: 3_000_000, self_ns: 1_000_000 },
            { name: "ampere_sgemm_128x64_tn", class: 4, count: 30, total_ns: 2_000_000, self_ns: 2_000_000 },
          ],
        });
      case "what_if": {
        const changes = await posted();
        if (changes === null) return json({ error: { message: "not a POST", hint: "" } }, 405);
        if (/^nonsense/.test(changes)) return json({ error: NO_CHANGE }, 400);
        return json(whatIf(changes));
      }
      case "diff":
        return openings-- > 0 ? json({ state: "opening", share: 0.4 }, 202) : json(difference(query.get("before"), query.get("run")));
      case "query": {
        const sql = await posted();
        if (sql === null) return json({ error: { message: "not a POST", hint: "" } }, 405);
        if (!/^select/i.test(sql)) return json({ error: { message: `near "${sql.slice(0, 20)}": syntax error`, hint: "Queries begin with SELECT." } }, 400);
        const rows = Array.from({ length: 120 }, (_, i) => [`kernel_${i}`, i * 1000, null]);
        return json({ columns: ["name", "total_ns", "nothing"], rows, cut: true });
      }
      default:
        return json({ error: { message: "unknown", hint: "" } }, 404);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}/TOKEN/`,
    asked,
    runs,
    close: () => new Promise((resolve) => (server.closeAllConnections?.(), server.close(resolve))),
  };
}
