// Bundles src/app.tsx and src/report.css into OUT (default dist/): report.js, report.css, and csp.txt, the page's
// content security policy. Script and style are allowed by their hash only, so the three files belong together and
// src/report/html.cc puts them between tags byte for byte.
//
//   node build.mjs [OUT] [--third-party FILE]
//
// --third-party writes the packages that are really in the bundle, with their licence texts, taken from esbuild's
// metafile; web/third_party.json is the kept copy from which THIRD_PARTY_NOTICES is made.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

export async function bundle() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: { report: "src/app.tsx", style: "src/report.css" },
    outdir: "dist",
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "iife",
    target: ["es2020"],
    charset: "ascii",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
  });
  const text = (ending) => result.outputFiles.find((file) => file.path.endsWith(ending)).text.trim();
  const script = text("report.js");
  const style = text("style.css");
  // What would end or change the mode of an inline element must not occur in it.
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error("the bundle would end its own tag");
  const hash = (content) => `'sha256-${createHash("sha256").update(content).digest("base64")}'`;
  const policy =
    `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; ` +
    `base-uri 'none'; form-action 'none'`;
  return { script, style, policy, packages: bundledPackages(result.metafile) };
}

function bundledPackages(metafile) {
  const names = new Set();
  for (const output of Object.values(metafile.outputs)) {
    for (const [path, part] of Object.entries(output.inputs)) {
      const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
      if (match && part.bytesInOutput > 0) names.add(match[1]);
    }
  }
  return [...names].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} is bundled but has no licence file`);
    return {
      name,
      version: about.version,
      license: about.license,
      text: readFileSync(join(folder, file), "utf8"),
    };
  });
}

async function main(args) {
  const at = args.indexOf("--third-party");
  const thirdParty = at >= 0 ? args.splice(at, 2)[1] : undefined;
  const out = resolve(args[0] ?? join(here, "dist"));
  const { script, style, policy, packages } = await bundle();
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "report.js"), script);
  writeFileSync(join(out, "report.css"), style);
  writeFileSync(join(out, "csp.txt"), policy);
  if (thirdParty) writeFileSync(thirdParty, thirdPartyText(packages));
}

export function thirdPartyText(packages) {
  return JSON.stringify(packages, null, 2) + "\n";
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2));
}
