import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { UserError } from "../../src/lib/errors.ts";

/** Somebody else has the data directory, for now or for long. */
export class DataDirInUse extends UserError {}

/** Holds the data directory until it is released or the process ends, however it ends. */
export type DataLock = { release(): void };

/** Kept from the garbage collector, which would end a lock whose DataLock nobody holds. */
const held = new Set<Sqlite.Database>();

/** Long enough for somebody else's isLocked() to be over; only start-up waits. */
const ACQUIRE_WAIT_MS = 250;

/** Never to be opened with node:fs by the process that owns it: closing any descriptor of a file drops its locks. */
const lockFile = (dataDir: string) => join(dataDir, "server.lock");
const pidFile = (dataDir: string) => join(dataDir, "server.pid");

/**
 * Makes this process the only owner of `dataDir`, which is made when absent. The lock is SQLite's own on an empty
 * file beside the database: the kernel drops it with the process, so nothing is ever stale, and it also keeps out a
 * second owner in the same process. The process id is kept for the message alone. Throws DataDirInUse when it is taken.
 */
export function acquireDataLock(dataDir: string): DataLock {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const connection = lock(dataDir, ACQUIRE_WAIT_MS);
  if (connection === null) {
    const pid = holderOf(dataDir);
    throw new DataDirInUse(
      `The data directory ${dataDir} is in use by another vodbox${pid ? ` (pid ${pid})` : ""}. Stop it, or choose another with --data.`,
    );
  }
  held.add(connection);
  writeFileSync(pidFile(dataDir), `${process.pid}\n`);
  return { release: () => letGo(connection) };
}

/** Whether a running process owns `dataDir`. */
export function isLocked(dataDir: string): boolean {
  if (!existsSync(lockFile(dataDir))) return false;
  const connection = lock(dataDir, 0);
  if (connection !== null) letGo(connection);
  return connection === null;
}

function lock(dataDir: string, timeout: number): Sqlite.Database | null {
  const connection = new Sqlite(lockFile(dataDir), { timeout });
  try {
    connection.exec("BEGIN EXCLUSIVE");
    return connection;
  } catch (error) {
    connection.close();
    if (error instanceof Sqlite.SqliteError && error.code.startsWith("SQLITE_BUSY")) return null;
    throw error;
  }
}

function letGo(connection: Sqlite.Database): void {
  if (!connection.open) return;
  // Closing alone would keep the lock for as long as a statement of the connection lives.
  connection.exec("ROLLBACK");
  connection.close();
  held.delete(connection);
}

/** The process that owns `dataDir`, or last did; null when none ever has. */
export function holderOf(dataDir: string): number | null {
  try {
    return Number(readFileSync(pidFile(dataDir), "utf8")) || null;
  } catch {
    return null;
  }
}
