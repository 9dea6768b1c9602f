import { fileURLToPath } from "node:url";
import { withEffects } from "./after-commit.ts";
import { truncateWal } from "./checkpoint.ts";
import { localClient } from "./client.ts";
import { clusterCommits } from "./commit-cache.ts";
import { Connection } from "./connection.ts";
import type { Database, DatabaseLog, OpenOptions } from "./database.ts";
import { queryBuilder } from "./query-builder.ts";
import { Reader } from "./reader.ts";
import { WriteQueue } from "./write-queue.ts";
import { Writer } from "./writer.ts";

/** Re-exported for callers that open a database. */
export type { Database, DatabaseAddress, DatabaseLog, Db, OpenOptions } from "./database.ts";

/** The path in a `file:` URL (`file:relative.db`, `file:/absolute.db`, `file:///absolute.db`), else null. */
export function databaseFile(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  return url.startsWith("file://") ? fileURLToPath(url) : url.slice("file:".length);
}

/** Opens a local file (created if missing) or a remote libSQL server; both behave alike. Migrate first. */
export async function openDatabase(options: OpenOptions): Promise<Database> {
  const file = databaseFile(options.url);
  if (file !== null) return openLocal(file, options);
  const { openRemote } = await import("./remote.ts");
  return openRemote(options);
}

function openLocal(file: string, options: OpenOptions): Database {
  const { log, lockWaitMs, workLimitMs, writeLock, checkpoints = true } = options;
  const queue = new WriteQueue({
    open: () => new Connection(file, "write", { checkpoints }),
    ...(lockWaitMs === undefined ? {} : { lockWaitMs }),
    ...(workLimitMs === undefined ? {} : { workLimitMs }),
    writeLock,
    ...(log ? { warn: (fields, message) => log.warn(fields, message) } : {}),
  });
  const reader = new Reader(file);
  const tx = queryBuilder(localClient(new Writer(queue)));
  return {
    file,
    db: queryBuilder(localClient(reader)),
    write: withEffects(tx, (work) => queue.write(() => work(tx))),
    exclusively: (work) => queue.exclusively(work),
    commits: writeLock
      ? clusterCommits(
          () => queue.commits,
          () => reader.version(),
        )
      : () => queue.commits,
    writes: () => ({ waiting: queue.waiting, commits: queue.commits, commitSeconds: queue.commitSeconds }),
    async close() {
      await queue.close();
      reader.close();
      if (!writeLock) await checkpointOnClose(file, log);
    },
  };
}

/** Never throws: a stop must not fail when the log cannot be emptied, because the next start reads it. */
export async function checkpointOnClose(file: string, log?: DatabaseLog): Promise<void> {
  try {
    if (await truncateWal(file)) return;
    log?.warn({ file }, "another process has the database open: recent data is still in the -wal file; copy both");
  } catch (error) {
    log?.warn({ file, err: error }, "the -wal file could not be emptied: copy it together with the database");
  }
}
