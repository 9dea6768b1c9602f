import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Peers } from "#app.ts";
import { type Clock, type Lock, setInterval, sleep } from "#lib/base";
import { programVersion } from "#lib/executable";
import { databaseFileOf } from "#platform/config/database-file.ts";
import type { Config } from "#platform/config/load.ts";
import { openReplicaStore } from "#platform/config/replica-store.ts";
import { SECRET_NAMES } from "#platform/config/secrets.ts";
import { Connection } from "#storage/db/connection.ts";
import type { Database } from "#storage/db/open.ts";
import { type ReplicaStatus, Replicator } from "#storage/replica/replicator.ts";

/** The replication of this server's database. */
export type Replication = {
  status(): Promise<ReplicaStatus>;
  /** After the last write: stores what is left, for a few seconds at most. */
  finish(): Promise<void>;
  /** After the database was closed. */
  close(): Promise<void>;
};

/** The state of the replication in the data directory. */
const FOLDER = "replica";
/** Lock of the process that replicates, and name under which it posts its status. */
const NAME = "replica";
const POST_MS = 500;
const START_AGAIN_MS = 1000;
const TAKE_OVER_MS = 4000;
/** In which a process that replicates reports for the first time. */
const START_MS = 10_000;
const DAY_MS = 86_400_000;

/**
 * Opens a connection to an existing database before anything else does: the last connection that closes empties the
 * write-ahead log, which after a crash contains what the replica does not have yet. Null when there is no database, or
 * when it cannot be opened, which the start reports.
 */
export function holdLog(config: Config): Connection | null {
  const file = databaseFileOf(config);
  if (file === null || !statSync(file, { throwIfNoEntry: false })?.size) return null;
  try {
    const connection = new Connection(file, "write", { checkpoints: false });
    connection.run("SELECT count(*) FROM sqlite_schema");
    return connection;
  } catch {
    return null;
  }
}

type Parts = {
  database: Pick<Database, "exclusively" | "file">;
  connection: Connection | null;
  peers: Peers | null;
  clock: Clock;
  log: Logger;
};

/** Starts the replication. With several processes, one of them replicates, and another takes over when it exits. */
export function replicate(config: Config, replica: string, parts: Parts): Replication {
  const { database, peers, clock, log } = parts;
  const file = database.file as string;
  const replicator = new Replicator({
    file,
    connection: parts.connection ?? new Connection(file, "write", { checkpoints: false }),
    folder: join(config.data_dir, FOLDER),
    openStore: () => openReplicaStore(config, replica),
    exclusively: (work) => database.exclusively(work),
    secrets: () => secretsIn(config.data_dir),
    now: () => clock.now(),
    log,
    retentionMs: config.replica_retention_days * DAY_MS,
    vodbox: programVersion(),
  });
  let lock: Lock | null = null;
  let posting: NodeJS.Timeout | undefined;
  let isOver = false;
  const start = async () => {
    lock = (await peers?.take(NAME)) ?? null;
    while (!isOver) {
      try {
        await replicator.start();
        break;
      } catch (error) {
        // Without it the write-ahead log would grow without limit.
        log.error({ err: error }, "the replication could not be started; it is tried again");
        await sleep(START_AGAIN_MS);
      }
    }
    const post = () => void peers?.post(NAME, replicator.status());
    if (!isOver) posting = setInterval(post, POST_MS).unref();
  };
  const startedAt = clock.now();
  const started = start();
  return {
    async status() {
      if (!peers || lock) return replicator.status();
      const posted = (await peers.posted(NAME)) as ReplicaStatus | undefined;
      if (posted) return posted;
      // At a start the process that replicates has not reported yet.
      const ms = clock.now() - startedAt;
      const error = ms < START_MS ? null : "No process replicates the database at the moment.";
      return { lag_seconds: Math.max(0, ms) / 1000, error };
    },
    async finish() {
      // The other processes may still be writing; the last one to stop stores the rest.
      await Promise.race([started, sleep(TAKE_OVER_MS, undefined, { ref: false })]);
      isOver = true;
      clearInterval(posting);
      await replicator.finish();
      lock?.end();
    },
    close: () => replicator.close(),
  };
}

/** Only secrets in the data directory, as in a backup. */
function secretsIn(dataDir: string): Record<string, string> {
  const files = SECRET_NAMES.map((name) => [name, join(dataDir, "secrets", name)] as const);
  return Object.fromEntries(
    files.filter(([, path]) => existsSync(path)).map(([name, path]) => [name, readFileSync(path, "utf8")]),
  );
}
