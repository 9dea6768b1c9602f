import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Flaky, judge } from "./flaky.ts";
import type { FileResult, Results } from "./reporter.ts";

/**
 * Runs Vitest with the given arguments, and each file that failed once more, alone. A file that passes then is reported as
 * flaky; `judge` decides whether the run passes. Exits with 0 or 1.
 */

const root = join(import.meta.dirname, "../..");
/** The files that were flaky in the last complete run: committed, so that the next run finds them. */
const record = join(root, "test/flaky.json");
/** With more failures something is broken, and trying each again would only take time. */
const MAX_RETRIED = 6;

async function vitest(args: string[]): Promise<{ ok: boolean; results: Results | null }> {
  const folder = mkdtempSync(join(tmpdir(), "vodbox-results-"));
  const path = join(folder, "results.json");
  const program = join(root, "node_modules/vitest/vitest.mjs");
  const reporters = ["--reporter=default", `--reporter=${join(import.meta.dirname, "reporter.ts")}`];
  try {
    const child = spawn(process.execPath, [program, "run", ...reporters, ...args], {
      cwd: root,
      stdio: "inherit",
      env: { ...process.env, VODBOX_TEST_RESULTS: path },
    });
    const code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
    return { ok: code === 0, results: existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The failed files that pass alone, with the same options, and those that do not. */
async function retried(failed: FileResult[], args: string[]): Promise<{ flaky: Flaky[]; broken: FileResult[] }> {
  const options = args.filter((arg) => arg.startsWith("--") && arg !== "--project" && !arg.startsWith("--shard"));
  const flaky: Flaky[] = [];
  const broken: FileResult[] = [];
  for (const each of failed) {
    const { file, project, failure } = each;
    console.log(`\nRunning ${file} (${project}) once more, alone`);
    const { ok } = await vitest([...options, "--project", project, file]);
    if (ok) flaky.push({ file, project, failure: failure ?? "" });
    else broken.push(each);
  }
  return { flaky, broken };
}

async function main(args: string[]): Promise<boolean> {
  const isWhole = args.every((arg, index) => arg.startsWith("--") || args[index - 1] === "--project");
  const { ok, results } = await vitest(args);
  const failed = results?.files.filter((file) => file.failed) ?? [];
  if (!ok && (!results || results.errors.length > 0 || failed.length === 0)) return false;
  if (failed.length > MAX_RETRIED) {
    console.log(`\n${failed.length} files failed: none is tried again.`);
    return false;
  }
  const { flaky, broken } = await retried(failed, args);
  for (const { file, failure } of flaky) console.log(`FLAKY ${file}: ${failure}`);
  for (const { file, project } of broken) console.log(`FAILED ${file} (${project}), also alone`);
  const before: Flaky[] = existsSync(record) ? JSON.parse(readFileSync(record, "utf8")) : [];
  const verdict = judge(flaky, before);
  for (const reason of verdict) console.log(reason);
  // Part of a tier says nothing about the files that it left out.
  if (isWhole && (flaky.length > 0 || before.length > 0)) writeFileSync(record, `${JSON.stringify(flaky, null, 2)}\n`);
  return broken.length === 0 && verdict.length === 0;
}

process.exitCode = (await main(process.argv.slice(2))) ? 0 : 1;
