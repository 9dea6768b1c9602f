import { EventEmitter } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "pino";
import { sharedCommits } from "../storage/db/commit-cache.ts";
import { acceptEmptyDatabase } from "../storage/db/database-contents.ts";
import { isStorageFailure } from "../storage/db/failures.ts";
import { acquireDataLock } from "../storage/db/lock.ts";
import { migrate } from "../storage/db/migrate.ts";
import { type Db, openDatabase } from "../storage/db/open.ts";
import * as schema from "../storage/db/schema.ts";
import { monitored } from "../storage/objects/monitored.ts";
import { type SwitchingStore, switchingStore } from "../storage/objects/switching.ts";
import type { App } from "./app.ts";
import type { ClusterWorker } from "./cluster/cluster-worker.ts";
import { crossValidate } from "./config/cross-validate.ts";
import { databaseFileOf } from "./config/database-file.ts";
import type { Config } from "./config/load.ts";
import { lostDatabase, lostRemoteDatabase, refuseLostDatabase } from "./config/lost-database.ts";
import { ensureDataDir, loadSecrets, writeSecret } from "./config/secrets.ts";
import { type OpenStore, storesOf } from "./config/stores.ts";
import { deliveriesOwed } from "./events/emit.ts";
import { auditing } from "./http/audit.ts";
import { createServer, type HttpServer } from "./http/server.ts";
import { type Clock, systemClock } from "./lib/clock.ts";
import { embeddedMigrations } from "./lib/embedded.ts";
import { UserError } from "./lib/errors.ts";
import { randomName } from "./lib/tokens.ts";
import { recoverImports } from "./resources/assets/import/recover.ts";
import { finishRestore } from "./resources/operator/backup/resume-restore.ts";
import { pauseMigration } from "./resources/operator/migration/run.ts";
import { disagreement, openStores, storageLocationOf } from "./resources/operator/migration/storage-location.ts";
import type { Egress } from "./resources/playback/egress.ts";
import { repairReservedBytes } from "./resources/tenants/reserved-bytes.ts";
import { allRoutes } from "./routes.ts";

export type Opened = {
  app: App;
  server: HttpServer;
  egress: Egress;
  routes: ReturnType<typeof allRoutes>["routes"];
  /** Called once the socket listens, with its own address; the base URL may be another. */
  listeningOn(address: string): void;
  /** Those who wait inside requests are told to finish. */
  beginStop(): void;
  close(): Promise<void>;
};

export type OpenOptions = {
  log: Logger;
  clock?: Clock;
  clusterWorker?: ClusterWorker | null;
  /** Begin with an empty database even where objects or secrets of another one are left. */
  allowEmptyDatabase?: boolean;
};

/**
 * The whole program without a socket: takes the data directory, migrates, assembles. Start-up is recovery: nothing here
 * depends on how the last run ended.
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
  { log, clock = systemClock, clusterWorker = null, allowEmptyDatabase = false }: OpenOptions,
): Promise<Opened> {
  // Before anything is made: what is missing is told on an empty folder too.
  crossValidate(config);
  ensureDataDir(config.data_dir);
  // Of several processes their keeper holds it.
  const lock = clusterWorker ? { release() {} } : acquireDataLock(config.data_dir);
  try {
    if (!clusterWorker) await finishRestore(config.data_dir);
    const address = await databaseOf(config, { log, allowEmptyDatabase });
    // After the database: a first start that is killed in between must not look as if its database were lost.
    const secrets = loadSecrets(config);
    const database = await openDatabase({
      ...address,
      schema,
      log,
      ...(clusterWorker && { turn: () => clusterWorker.take("write") }),
    });
    let base = config.base_url ?? `http://${config.host}:${config.port}`;
    const baseUrl = () => base;
    const openStore = storesOf(config, secrets.signing_secret, baseUrl, { clusterWorker });
    const signals: App["signals"] = new EventEmitter();
    const found = await objectsOf(database.db, config, openStore, log);
    const objects = found && monitored(found, (how) => signals.emit("storage.failed", how));
    const localProof = clusterWorker?.localProof ?? randomName(40);
    if (!clusterWorker || clusterWorker.isFirst) writeSecret(join(config.data_dir, "local-proof"), localProof);
    const stopping = new AbortController();
    // Every idle worker waits on one of these.
    signals.setMaxListeners(0);
    const app: App = {
      config,
      secrets,
      db: database.db,
      write: tellingOfDeliveries(auditing(database.write), () => signals.emit("delivery.due")),
      // A file that is named by a setting may be somebody else's too.
      commits: config.database_url === undefined ? database.commits : sharedCommits(database.commits),
      peers: clusterWorker,
      writes: database.writes,
      objects,
      openStore,
      clock,
      log,
      baseUrl,
      signals,
      stopping: stopping.signal,
      localProof,
    };
    if (app.commits() !== null && (!clusterWorker || clusterWorker.isFirst)) await repairReservedBytes(app);
    await recoverImports(app);
    const { routes, egress } = allRoutes(app);
    return {
      app,
      routes,
      egress,
      server: createServer(app, routes),
      listeningOn(found) {
        base = config.base_url ?? found;
      },
      beginStop: () => stopping.abort(),
      async close() {
        stopping.abort();
        await pauseMigration(app);
        await database.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Creates the database of the settings where there is none, and migrates it. Throws UserError where it looks lost. */
async function databaseOf(
  config: Config,
  { log, allowEmptyDatabase }: Pick<OpenOptions, "log" | "allowEmptyDatabase">,
) {
  const isLost = lostDatabase(config) !== null;
  if (!allowEmptyDatabase) refuseLostDatabase(config);
  if (config.database_url === undefined) makeDatabaseFile(join(config.data_dir, "vodbox.db"));
  const address = {
    url: config.database_url ?? `file:${join(config.data_dir, "vodbox.db")}`,
    ...(config.database_auth_token && { authToken: config.database_auth_token }),
  };
  const file = databaseFileOf(config);
  const beforeFirst = () => {
    const lost = file === null && !allowEmptyDatabase ? lostRemoteDatabase(config) : null;
    if (lost !== null) throw new UserError(lost);
  };
  await migrate({ ...address, migrations: embeddedMigrations(), log, beforeFirst });
  if (file !== null && isLost) acceptEmptyDatabase(file);
  return address;
}

/** Before SQLite would make it for everybody to read; -wal and -shm get the mode that it has. */
function makeDatabaseFile(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, "wx", 0o600));
}

/** Where objects are, by the record of migrations before the settings: a start must not serve from the wrong place. */
async function objectsOf(db: Db, config: Config, openStore: OpenStore, log: Logger): Promise<SwitchingStore | null> {
  if (config.storage === "none") return null;
  const place = await storageLocationOf(db);
  const warning = disagreement(place, config.storage);
  if (warning) log.warn(warning);
  const { store, pair } = await openStores(place, config.storage, openStore);
  return switchingStore(store, pair);
}

/** `write`, which calls `tell` once events that somebody waits for are committed. */
function tellingOfDeliveries(write: App["write"], tell: () => void): App["write"] {
  return async (work) => {
    let more = 0;
    const result = await write(async (tx) => {
      const before = deliveriesOwed(tx);
      const value = await work(tx);
      more = deliveriesOwed(tx) - before;
      return value;
    });
    if (more > 0) tell();
    return result;
  };
}
