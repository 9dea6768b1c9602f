import { sleep } from "#lib/base";
import { Connection } from "./connection.ts";
import { isBusy } from "./failures.ts";

/** Part of the 15 s that a stop may take. */
const LIMIT_MS = 1500;
const RETRY_MS = 20;

/**
 * Moves the whole write-ahead log into the database `file` and truncates the log, so that the file alone is the whole
 * database (https://sqlite.org/pragma.html#pragma_wal_checkpoint). Called by the last owner of the file: a reader or a
 * writer of another process is waited for, at most 1.5 s. Resolves with false when the log is not empty after that;
 * nothing is lost then, because the log has the rest. Throws LibsqlError when the disk fails.
 */
export async function truncateWal(file: string): Promise<boolean> {
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    if (isEmptied(file)) return true;
    if (performance.now() > deadline) return false;
    await sleep(RETRY_MS);
  }
}

/** On its own connection: one that received BUSY must not be used again. */
function isEmptied(file: string): boolean {
  let connection: Connection | undefined;
  try {
    connection = new Connection(file, "write");
    const [row] = connection.run("PRAGMA wal_checkpoint(TRUNCATE)").rows;
    return row?.busy === 0;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  } finally {
    connection?.close();
  }
}
