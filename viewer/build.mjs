// Builds the viewer into the Python package. The same sources give the same bytes, on every machine.
//   node build.mjs          write app.js, app.css and licenses.txt
//   node build.mjs --check  build in memory and fail when the committed files differ
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "agentunit", "addons", "viewer", "static");
const MOST_GZIPPED_BYTES = 150_000;

function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(path) : [path];
  });
}

// tests/addons/viewer/test_built_files.py computes the same digest without Node: keep both alike.
function digestOfSources() {
  const names = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"].map((name) => join(here, name));
  const paths = [...names, ...filesUnder(join(here, "src"))];
  const named = paths.map((path) => [relative(here, path).split(sep).join("/"), path]);
  named.sort(([a], [b]) => (a < b ? -1 : 1));
  const digest = createHash("sha256");
  for (const [name, path] of named) {
    const content = readFileSync(path, "utf8").replaceAll("\r\n", "\n");
    digest.update(`${name}\0${Buffer.byteLength(content)}\0${content}`);
  }
  return digest.digest("hex");
}

function licenses() {
  const { dependencies } = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  const names = [...Object.keys(dependencies), "@preact/signals-core"].sort();
  return names.map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).filter((each) => /^licen[cs]e(\.|$)/i.test(each)).sort()[0];
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : `License: ${license}`;
    return `${name} ${version} (${license})\n\n${text}\n`;
  }).join(`\n${"-".repeat(100)}\n\n`);
}

async function build() {
  const made = await esbuild.build({
    absWorkingDir: here,
    entryPoints: { app: "src/main.tsx" },
    outdir: "out",
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2022"],
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { "process.env.NODE_ENV": '"production"' },
    write: false,
    metafile: true,
    logLevel: "warning",
  });
  const banner = `/* AgentUnit viewer; licenses of its parts: licenses.txt; sources: ${digestOfSources()} */\n`;
  const files = new Map([["licenses.txt", licenses()]]);
  for (const { path, text } of made.outputFiles) {
    // A single-file report inlines both: nothing in them may end the element, nor start a comment in it.
    if (/<\/(script|style)/i.test(text)) throw new Error(`${path} contains a closing tag and cannot be inlined`);
    files.set(path.endsWith(".css") ? "app.css" : "app.js", banner + text.replaceAll("<!--", "\\x3c!--"));
  }
  return { files, metafile: made.metafile };
}

const { files, metafile } = await build();
if (process.argv.includes("--sizes")) {
  console.log(await esbuild.analyzeMetafile(metafile));
}
const gzipped = ["app.js", "app.css"].reduce((sum, name) => sum + gzipSync(files.get(name), { level: 9 }).length, 0);
if (process.argv.includes("--check")) {
  const read = (name) => { try { return readFileSync(join(target, name), "utf8"); } catch { return null; } };
  const stale = [...files].filter(([name, text]) => read(name) !== text).map(([name]) => name);
  if (stale.length > 0) {
    console.error(`not what the sources build: ${stale.join(", ")}. Run: make viewer`);
    process.exit(1);
  }
} else {
  mkdirSync(target, { recursive: true });
  for (const [name, text] of files) writeFileSync(join(target, name), text);
}
console.log(`viewer: ${(gzipped / 1000).toFixed(1)} kB gzipped`);
if (gzipped > MOST_GZIPPED_BYTES) {
  console.error(`the viewer may take ${MOST_GZIPPED_BYTES / 1000} kB gzipped`);
  process.exit(1);
}
