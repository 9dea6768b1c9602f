import { randomFillSync } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { filledServer } from "#test/support/backups.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { vodbox } from "#test/support/process.ts";

/** More by hand: BACKUP_MEGABYTES=1024 vitest run test/suites/operations/backup-memory.test.ts */
const MEGABYTES = amount(96, 256, "BACKUP_MEGABYTES");
const OBJECT_MEGABYTES = 32;
const MAX_GROWTH = 64;
const MEGABYTE = 2 ** 20;

/** The peak memory of a process, in megabytes; 0 once it has exited. */
function peakOf(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

async function commandPeak(...args: string[]): Promise<number> {
  const started = vodbox(["admin", ...args], { env: { VODBOX_ADMIN_TOKEN: "", VODBOX_LOG_LEVEL: "error" } });
  let peak = 0;
  const { child } = started;
  for (; child.exitCode === null && child.signalCode === null; await sleep(10))
    peak = Math.max(peak, peakOf(child.pid as number));
  expect((await started.ended).code, started.stderr()).toBe(0);
  return peak;
}

/** The peak of a backup with this many objects, and of its restore. */
async function peaks(folder: string, objects: number) {
  const { server, key, dataDir } = await filledServer(join(folder, "data"));
  const source = Buffer.alloc(OBJECT_MEGABYTES * MEGABYTE);
  for (let i = 0; i < objects; i++) await uploaded(server, key, { bytes: randomFillSync(source) });
  const pid = server.child.pid as number;
  // Memory of the uploads does not belong to the backup: the peak is reset here.
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  const before = peakOf(pid);
  const file = join(folder, "a.tar.zst");
  const backup = await commandPeak("backup", file, "--objects", "--data", dataDir);
  const serving = peakOf(pid) - before;
  server.child.kill("SIGTERM");
  await server.ended;
  rmSync(dataDir, { recursive: true });
  const check = await commandPeak("restore", file, "--check");
  const restore = await commandPeak("restore", file, "--data", join(folder, "restored"));
  return { backup, serving, check, restore };
}

test(`the memory of a backup and its restore does not grow with ${MEGABYTES} MB more of objects`, {
  timeout: 300_000 + MEGABYTES * 1000,
}, async () => {
  const folder = emptyFolder();
  // Both have at least one object: streaming any needs buffers, however many follow.
  const few = await peaks(join(folder, "few"), 1);
  const many = await peaks(join(folder, "many"), 1 + Math.ceil(MEGABYTES / OBJECT_MEGABYTES));
  const told = (found: typeof few) => Object.entries(found).map(([name, peak]) => `${name} ${Math.round(peak)}`);
  console.log(
    `peaks in MB of memory (of the server: growth) with one object: ${told(few)}; with ${MEGABYTES} MB more: ${told(many)}`,
  );
  for (const name of Object.keys(few) as (keyof typeof few)[]) {
    if (name !== "serving") expect.soft(few[name], name).toBeGreaterThan(20);
    expect.soft(many[name] - few[name], name).toBeLessThan(MAX_GROWTH);
  }
});
