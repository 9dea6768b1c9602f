import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { UserError } from "#src/lib/base/errors.ts";
import { acquireDataLock, isLocked } from "#storage/db/lock.ts";
import { folder } from "#test/support/storage/database.ts";

/** A second process that owns `dataDir` once this resolves. */
async function owner(dataDir: string): Promise<ChildProcess> {
  const program = `
    import { acquireDataLock } from ${JSON.stringify(new URL("../../../storage/db/lock.ts", import.meta.url).href)};
    acquireDataLock(process.argv[1]);
    process.stdout.write("locked");
    setInterval(() => {}, 60_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout as NodeJS.ReadableStream, "data");
  return child;
}

test("a second process is refused with the holder of the directory; kill -9 releases it", async () => {
  const dataDir = join(folder(), "data");
  expect(isLocked(dataDir)).toBe(false);
  const child = await owner(dataDir);
  expect(isLocked(dataDir)).toBe(true);
  expect(() => acquireDataLock(dataDir)).toThrow(UserError);
  expect(() => acquireDataLock(dataDir)).toThrow(`in use by another vodbox (pid ${child.pid})`);

  child.kill("SIGKILL");
  await once(child, "close");
  expect(isLocked(dataDir)).toBe(false);
  const lock = acquireDataLock(dataDir);
  expect(() => acquireDataLock(dataDir)).toThrow(`(pid ${process.pid})`);
  lock.release();
  lock.release();
  expect(isLocked(dataDir)).toBe(false);
});

test("checking whether a directory is locked does not change it", () => {
  const dataDir = folder();
  const lock = acquireDataLock(dataDir);
  for (let i = 0; i < 3; i++) expect(isLocked(dataDir)).toBe(true);
  lock.release();
  acquireDataLock(dataDir).release();
});
