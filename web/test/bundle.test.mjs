// What the bundle may be: small, without a way to the network, with its licences on record.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { bundle, thirdPartyText } from "../build.mjs";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const { script, style, policy, packages } = await bundle();

test("script and style stay within 60 kB gzip", () => {
  assert.ok(gzipSync(script).length + gzipSync(style).length <= 60_000);
});

test("nothing in it can ask the network", () => {
  assert.doesNotMatch(script, /\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|EventSource|importScripts|localStorage/);
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
