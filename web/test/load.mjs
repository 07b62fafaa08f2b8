// Loads one TypeScript module of web/src into node.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const web = dirname(dirname(fileURLToPath(import.meta.url)));

export async function load(path) {
  const { outputFiles } = await build({
    absWorkingDir: web,
    entryPoints: [join("src", path)],
    bundle: true,
    write: false,
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  const folder = mkdtempSync(join(web, "node_modules", ".test-"));
  const file = join(folder, "module.mjs");
  writeFileSync(file, outputFiles[0].contents);
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
