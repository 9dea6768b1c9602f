import crypto from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { cpuUsage } from "node:process";
import { afterAll, expect, vi } from "vitest";
import { afterEachFile } from "./after-file.ts";

/** Clock ticks of a second in /proc (sysconf(_SC_CLK_TCK), which is 100 on Linux). */
const TICKS = 100;

/** Processor seconds of this process, and of its children that have ended. */
function processorSeconds(): number {
  const { user, system } = cpuUsage();
  const stat = readFileSync("/proc/self/stat", "utf8");
  // Fields 16 and 17, cutime and cstime: proc(5). The name before them may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (user + system) / 1e6 + (Number(fields[13]) + Number(fields[14])) / TICKS;
}

const PATCHED = Symbol.for("vodbox.tests.scrypt");

/**
 * In the processes of the tests passwords are hashed with a 96th of the work, which took half of the processor time of the
 * API's tests. The suites start the program as it is.
 */
function hashPasswordsFast(): void {
  if (PATCHED in crypto.scrypt) return;
  const { scrypt } = crypto;
  const fast: typeof scrypt = (
    password: crypto.BinaryLike,
    salt: crypto.BinaryLike,
    bytes: number,
    ...rest: unknown[]
  ) => scrypt(password, salt, bytes, { N: 1024, r: 8, p: 1 }, rest.at(-1) as Parameters<typeof scrypt>[4]);
  crypto.scrypt = Object.assign(fast, { [PATCHED]: true });
  syncBuiltinESMExports();
}

hashPasswordsFast();
const before = processorSeconds();

afterAll(async () => {
  for (const work of afterEachFile) await work();
  // The next file of this process has its own settings.
  vi.resetConfig();
  const costs = process.env.VODBOX_TEST_COSTS;
  if (!costs) return;
  const seconds = (processorSeconds() - before).toFixed(2);
  appendFileSync(costs, `${JSON.stringify({ file: expect.getState().testPath, seconds: Number(seconds) })}\n`);
});
