// Bundles the tests and runs them with Node's own runner: node test.mjs
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const made = mkdtempSync(join(tmpdir(), "viewer-test-"));
const names = readdirSync(join(here, "test")).filter((name) => name.endsWith(".test.ts"));
await esbuild.build({
  absWorkingDir: here, entryPoints: names.map((name) => `test/${name}`), outdir: made, outExtension: { ".js": ".mjs" },
  bundle: true, platform: "node", format: "esm", target: "node20", logLevel: "warning",
});
const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=dot", ...readdirSync(made).map((name) => join(made, name))], { cwd: here, stdio: "inherit" });
rmSync(made, { recursive: true });
process.exit(status ?? 1);
