import { EventEmitter } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import type { App } from "#app.ts";
import { recoverImports } from "#features/assets/import/recover.ts";
import { finishRestore } from "#features/operations/backup/resume-restore.ts";
import { pauseMigration } from "#features/operations/migration/run.ts";
import { disagreement, openStores, storageLocationOf } from "#features/operations/migration/storage-location.ts";
import { holdLog, type Replication, replicate } from "#features/operations/replica/replicate.ts";
import type { Egress } from "#features/playback/egress.ts";
import { repairReservedBytes } from "#features/tenants/reserved-bytes.ts";
import { type Clock, RecentLines, randomName, SteppingClock, UserError } from "#lib/base";
import { embeddedMigrations } from "#lib/executable";
import { bound, type Tracer } from "#lib/tracing";
import type { ClusterWorker } from "#platform/cluster/cluster-worker.ts";
import { databaseFileOf } from "#platform/config/database-file.ts";
import type { Config } from "#platform/config/load.ts";
import { lostDatabase, lostRemoteDatabase, refuseLostDatabase } from "#platform/config/lost-database.ts";
import { ensureDataDir, loadSecrets, writeSecret } from "#platform/config/secrets.ts";
import { type OpenStore, storesOf } from "#platform/config/stores.ts";
import { auditing } from "#platform/http/audit.ts";
import { bindDispatch } from "#platform/http/dispatch.ts";
import { createServer, type HttpServer } from "#platform/http/server.ts";
import { openCache } from "#storage/cache/open-cache.ts";
import type { SharedCache } from "#storage/cache/shared-cache.ts";
import { sharedCommits } from "#storage/db/commit-cache.ts";
import type { Connection } from "#storage/db/connection.ts";
import { acceptEmptyDatabase } from "#storage/db/database-contents.ts";
import { isStorageFailure } from "#storage/db/failures.ts";
import { acquireDataLock } from "#storage/db/lock.ts";
import { migrate } from "#storage/db/migrate.ts";
import { type Db, openDatabase } from "#storage/db/open.ts";
import { monitored } from "#storage/objects/monitored.ts";
import { type SwitchingStore, switchingStore } from "#storage/objects/switching.ts";
import { crossValidate } from "./cross-validate.ts";
import { allRoutes } from "./routes.ts";

export type Opened = {
  app: App;
  server: HttpServer;
  egress: Egress;
  routes: ReturnType<typeof allRoutes>["routes"];
  /** Called once the socket listens, with its own URL; the base URL may differ. */
  listeningOn(address: string): void;
  /** Ends waiting requests, such as long polls. */
  beginStop(): void;
  close(): Promise<void>;
};

export type OpenOptions = {
  log: Logger;
  /** What `log` also writes to, for the operator's page. */
  recentLines?: RecentLines;
  clock?: Clock;
  tracer?: Tracer | null;
  clusterWorker?: ClusterWorker | null;
  /** Copy the database to the replica of the settings: only a server does. */
  replicates?: boolean;
  /** Start with an empty database even if objects or secrets of another one exist. */
  allowEmptyDatabase?: boolean;
};

/**
 * The whole program without a socket: locks the data directory, migrates, assembles. Every start is a recovery: nothing
 * depends on how the previous run ended.
 */
export async function openApp(config: Config, options: OpenOptions): Promise<Opened> {
  try {
    return await open(config, options);
  } catch (error) {
    if (error instanceof UserError || !isStorageFailure(error)) throw error;
    throw new UserError(
      `The disk of the data directory ${config.data_dir} is full, read-only or failing (${(error as Error).message}); free some space or choose another with --data.`,
    );
  }
}

async function open(
  config: Config,
  {
    log,
    recentLines = new RecentLines(),
    clock = new SteppingClock(),
    tracer = null,
    clusterWorker = null,
    allowEmptyDatabase = false,
    replicates = false,
  }: OpenOptions,
): Promise<Opened> {
  // Before anything is created, so that missing settings are reported on an empty directory too.
  await crossValidate(config);
  ensureDataDir(config.data_dir);
  // With several processes, the supervisor holds the lock.
  const lock = clusterWorker ? { release() {} } : acquireDataLock(config.data_dir);
  let cache: SharedCache | null = null;
  const replica = replicates ? config.replica : undefined;
  let connection: Connection | null = null;
  let replication: Replication | null = null;
  try {
    if (!clusterWorker) await finishRestore(config.data_dir);
    if (replica) connection = holdLog(config);
    const address = await databaseOf(config, { log, allowEmptyDatabase });
    // After the database: a first start that is killed in between must not look like a lost database.
    const secrets = loadSecrets(config);
    const database = await openDatabase({
      ...address,
      log,
      checkpoints: replica === undefined,
      ...(clusterWorker && { writeLock: () => clusterWorker.take("write") }),
    });
    if (replica) replication = replicate(config, replica, { database, connection, peers: clusterWorker, clock, log });
    let base = config.base_url ?? `http://${config.host}:${config.port}`;
    const baseUrl = () => base;
    const openStore = storesOf(config, { signingSecret: secrets.signing_secret, baseUrl, clusterWorker });
    const signals: App["signals"] = new EventEmitter();
    const opened = await objectsOf(database.db, config, openStore, log);
    const objects = opened && monitored(opened, (how) => signals.emit("storage.failed", how));
    const localProof = clusterWorker?.localProof ?? randomName(40);
    if (!clusterWorker || clusterWorker.isFirst) writeSecret(join(config.data_dir, "local-proof"), localProof);
    const folder = join(config.data_dir, "cache");
    cache = openCache(config.cache, { log, folder, minFreeBytes: config.min_free_bytes });
    const stopping = new AbortController();
    // Every idle worker adds a listener.
    signals.setMaxListeners(0);
    const app: App = {
      config,
      secrets,
      db: database.db,
      write: tracer ? inTrace(auditing(database.write)) : auditing(database.write),
      // A file that a setting names may belong to another program too.
      commits: config.database_url === undefined ? database.commits : sharedCommits(database.commits),
      peers: clusterWorker,
      writes: database.writes,
      replica: replication,
      objects,
      openStore,
      cache,
      clock,
      log,
      tracer,
      recentLines,
      baseUrl,
      signals,
      stopping: stopping.signal,
      localProof,
    };
    if (app.commits() !== null && (!clusterWorker || clusterWorker.isFirst)) await repairReservedBytes(app);
    await recoverImports(app);
    const { routes, egress } = allRoutes(app);
    const server = createServer(app, routes);
    bindDispatch(app, server);
    return {
      app,
      routes,
      egress,
      server,
      listeningOn(found) {
        base = config.base_url ?? found;
      },
      beginStop: () => stopping.abort(),
      async close() {
        stopping.abort();
        await pauseMigration(app);
        await app.cache.close();
        await replication?.finish();
        await database.close();
        await replication?.close();
        lock.release();
      },
    };
  } catch (error) {
    await cache?.close();
    await replication?.finish();
    connection?.close();
    lock.release();
    throw error;
  }
}

/** The queue runs works one after another: each belongs to the trace of its own caller. */
const inTrace =
  (write: App["write"]): App["write"] =>
  (work) =>
    write(bound(work));

/** Creates the database of the settings if there is none, and migrates it. Throws UserError when it looks lost. */
async function databaseOf(
  config: Config,
  { log, allowEmptyDatabase }: Pick<OpenOptions, "log" | "allowEmptyDatabase">,
) {
  const isLost = lostDatabase(config) !== null;
  refuseLostDatabase(config, { allowEmpty: allowEmptyDatabase });
  if (config.database_url === undefined) createDatabaseFile(join(config.data_dir, "vodbox.db"));
  const address = {
    url: config.database_url ?? `file:${join(config.data_dir, "vodbox.db")}`,
    ...(config.database_auth_token && { authToken: config.database_auth_token }),
  };
  const file = databaseFileOf(config);
  const beforeFirst = () => {
    const reason = file === null && !allowEmptyDatabase ? lostRemoteDatabase(config) : null;
    if (reason !== null) throw new UserError(reason);
  };
  await migrate({ ...address, migrations: embeddedMigrations(), log, beforeFirst });
  if (file !== null && isLost) acceptEmptyDatabase(file);
  return address;
}

/** Created before SQLite would create it world-readable; -wal and -shm get the same mode. */
function createDatabaseFile(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, "wx", 0o600));
}

/**
 * The current store by the record of migrations, which precedes the settings: a start must not serve from the wrong
 * store.
 */
async function objectsOf(db: Db, config: Config, openStore: OpenStore, log: Logger): Promise<SwitchingStore | null> {
  if (config.storage === "none") return null;
  const location = await storageLocationOf(db);
  const warning = disagreement(location, config.storage);
  if (warning) log.warn(warning);
  const { store, pair } = await openStores(location, config.storage, openStore);
  return switchingStore(store, pair);
}
