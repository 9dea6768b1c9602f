import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "#lib/base";

/*
 * Takes the place of storage/db/lock.ts in the npm package of the commands, which has no native library for locks. Its data
 * directories belong to no server; an import locks its record with it.
 */

export class DataDirInUse extends UserError {}

const lockFile = (dir: string) => join(dir, "client.lock");

/**
 * Makes this process the only one that uses `dir`, until it is released. The file has the process id; one that a killed process
 * left is taken over. Throws DataDirInUse.
 */
export function acquireDataLock(dir: string): { release(): void } {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const file = lockFile(dir);
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      writeFileSync(file, `${process.pid}\n`, { flag: "wx", mode: 0o600 });
      return { release: () => rmSync(file, { force: true }) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      takeAway(file);
    }
  }
  throw new DataDirInUse(`${dir} is in use by another vodbox. Delete ${file} if none runs.`);
}

/** Renames the file of a process that has ended. Only one of several processes succeeds, as with its creation. */
function takeAway(file: string): void {
  const holder = read(file);
  if (holder === null || isAlive(Number(holder))) return;
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
    // Another process has taken it over meanwhile, and holds what was renamed.
    if (read(aside) === holder) rmSync(aside, { force: true });
    else renameSync(aside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** No server runs from this package. */
export const isLocked = (_dir: string): boolean => false;
export const holderOf = (_dir: string): number | null => null;
