import { withEffects } from "./after-commit.ts";
import { localClient } from "./client.ts";
import type { Database, OpenOptions } from "./database.ts";
import { HranaServer } from "./hrana-server.ts";
import { queryBuilder } from "./query-builder.ts";
import { RemoteConnection } from "./remote-connection.ts";
import { RemoteReader } from "./remote-reader.ts";
import { LOCK_WAIT_MS } from "./wait.ts";
import { WriteQueue } from "./write-queue.ts";
import { Writer } from "./writer.ts";

/** sqld takes the write lock from a transaction of 5 s when another one waits for it. */
const GROUP_MS = 250;
const WORK_LIMIT_MS = 4000;

/**
 * A remote libSQL server (`libsql://`, `http(s)://`). It has a single write lock, and each statement is a round trip:
 * writes of this process are queued here, and queued writes share a transaction, as in a local file.
 */
export function openRemote(options: OpenOptions): Database {
  const { log, lockWaitMs = LOCK_WAIT_MS, workLimitMs = WORK_LIMIT_MS } = options;
  const server = new HranaServer(options);
  const queue = new WriteQueue({
    open: () => new RemoteConnection({ server, settleMs: lockWaitMs }),
    groupMs: GROUP_MS,
    lockWaitMs,
    workLimitMs,
    ...(log ? { warn: (fields, message) => log.warn(fields, message) } : {}),
  });
  const reader = new RemoteReader(server);
  const tx = queryBuilder(localClient(new Writer(queue)));
  return {
    file: null,
    db: queryBuilder(localClient(reader)),
    write: withEffects(tx, (work) => queue.write(() => work(tx))),
    exclusively: (work) => queue.exclusively(work),
    commits: () => queue.commits,
    writes: () => ({ waiting: queue.waiting, commits: queue.commits, commitSeconds: queue.commitSeconds }),
    async close() {
      await queue.close();
      reader.close();
      server.close();
    },
  };
}
