// What the bundle may be: small, with one way to the network that the report is refused, with its licences on record.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { bundle, thirdPartyText } from "../build.mjs";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const { script, style, policy, packages } = await bundle();

test("script and style stay within 250 kB gzip", () => {
  const size = gzipSync(script).length + gzipSync(style).length;
  assert.ok(size <= 250_000, `${size}`);
});

test("one place asks the network, for the served page; the report's policy refuses it", () => {
  assert.equal(script.match(/\bfetch\(/g).length, 1);
  assert.doesNotMatch(script, /XMLHttpRequest|WebSocket|sendBeacon|EventSource|importScripts|localStorage/);
  assert.doesNotMatch(policy, /connect-src/); // default-src 'none' stands for it
  assert.doesNotMatch(style, /url\(|@import/);
  assert.match(policy, /^default-src 'none';/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
});

test("web/third_party.json lists what is really bundled", () => {
  assert.equal(readFileSync(join(web, "third_party.json"), "utf8"), thirdPartyText(packages), "run: npm run build");
  assert.deepEqual(packages.map((one) => one.name), ["d3-hierarchy", "d3-path", "d3-shape", "preact"]);
});

test("the lock file names no registry", () => {
  assert.doesNotMatch(readFileSync(join(web, "package-lock.json"), "utf8"), /"resolved"/);
});
