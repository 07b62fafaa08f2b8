// Makes the page around a report as src/report/html.cc does, and opens pages in Debian's Chromium.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { bundle } from "../build.mjs";

export const here = dirname(fileURLToPath(import.meta.url));
export const sample = () => JSON.parse(readFileSync(join(here, "sample.json"), "utf8"));

const CHROMIUM = process.env.STEPSCOPE_CHROMIUM ?? "/usr/bin/chromium";
export const noBrowser = existsSync(CHROMIUM) ? false : `no browser at ${CHROMIUM}; install chromium or set STEPSCOPE_CHROMIUM`;

let built;
export async function pageFor(report) {
  built ??= await bundle();
  const json = (typeof report === "string" ? report : JSON.stringify(report)).replace(/</g, "\\u003c");
  return (
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n` +
    `<meta http-equiv="Content-Security-Policy" content="${built.policy}">\n` +
    `<title>t</title>\n<style>${built.style}</style>\n</head>\n<body>\n<div id="app"></div>\n` +
    `<script type="application/json" id="report-data">${json}</script>\n<script>${built.script}</script>\n</body>\n</html>\n`
  );
}

/** The address of a page as it is; `page.url()` is what the browser has told so far, which comes a moment after. */
export const hash = (page) => page.evaluate(() => location.hash);
export const params = async (page) => Object.fromEntries(new URLSearchParams((await hash(page)).split("?")[1]));

/** A browser of its own, with a fresh profile; `open` gives a page and what it logged and asked for. */
export async function startBrowser() {
  const folder = mkdtempSync(join(tmpdir(), "stepscope-web-"));
  const context = await chromium.launchPersistentContext(join(folder, "profile"), {
    executablePath: CHROMIUM,
    headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    viewport: { width: 1280, height: 800 },
  });
  let count = 0;
  return {
    context,
    async open(html, options = {}) {
      const file = options.file ?? join(folder, `page${count++}.html`);
      if (options.file === undefined) writeFileSync(file, html);
      const page = await context.newPage();
      await page.emulateMedia({ colorScheme: options.dark ? "dark" : "light" });
      const errors = [];
      const requests = [];
      page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
      page.on("pageerror", (error) => errors.push(String(error)));
      page.on("request", (request) => requests.push(request.url()));
      page.on("dialog", (dialog) => {
        errors.push(`dialog: ${dialog.message()}`);
        void dialog.dismiss();
      });
      const url = pathToFileURL(file).href;
      await page.goto(url);
      return { page, errors, requests: () => requests.filter((asked) => asked !== url && asked !== url + "#") };
    },
    async close() {
      await context.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
