import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "libsql";
import { UserError } from "#lib/base";

/** Another process holds the data directory. */
export class DataDirInUse extends UserError {}

/** The lock on the data directory, until it is released or the process ends in any way. */
export type DataLock = { release(): void };

/** Keeps connections from the garbage collector, which would release a lock whose DataLock is unreachable. */
const heldConnections = new Set<Sqlite.Database>();

/** Longer than another process's isLocked() takes; only start-up waits. */
const ACQUIRE_WAIT_MS = 250;

/** The owning process must never open this file with node:fs: closing any descriptor of a file releases its locks. */
const lockFile = (dataDir: string) => join(dataDir, "server.lock");
const pidFile = (dataDir: string) => join(dataDir, "server.pid");

/**
 * Makes this process the only owner of `dataDir`, which is created if missing. The lock is SQLite's own, on an empty
 * file next to the database: the kernel releases it with the process, so it is never stale, and it also excludes a
 * second owner in the same process. The process id is stored only for the message. Throws DataDirInUse when it is
 * taken.
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
  heldConnections.add(connection);
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
  // Closing alone would keep the lock for as long as a statement of the connection exists.
  connection.exec("ROLLBACK");
  connection.close();
  heldConnections.delete(connection);
}

/** The process that owns `dataDir`, or last did; null when none ever has. */
export function holderOf(dataDir: string): number | null {
  try {
    return Number(readFileSync(pidFile(dataDir), "utf8")) || null;
  } catch {
    return null;
  }
}
