import { EventEmitter } from "node:events";
import { join } from "node:path";
import type { Logger } from "pino";
import { isStorageFailure } from "../storage/db/failures.ts";
import { acquireDataLock } from "../storage/db/lock.ts";
import { migrate } from "../storage/db/migrate.ts";
import { openDatabase } from "../storage/db/open.ts";
import * as schema from "../storage/db/schema.ts";
import { localStore } from "../storage/objects/local.ts";
import type { S3StoreOptions } from "../storage/objects/s3.ts";
import type { ObjectStore } from "../storage/objects/store.ts";
import type { App } from "./app.ts";
import type { Config } from "./config/load.ts";
import { ensureDataDir, loadSecrets, writeSecret } from "./config/secrets.ts";
import { envName } from "./config/settings.ts";
import { deliveriesOwed } from "./events/emit.ts";
import { createServer, type HttpServer } from "./http/server.ts";
import { type Clock, systemClock } from "./lib/clock.ts";
import { embedded, embeddedNames } from "./lib/embedded.ts";
import { UserError } from "./lib/errors.ts";
import { addressSigning } from "./lib/signing.ts";
import { randomName } from "./lib/tokens.ts";
import type { Egress } from "./resources/playback/egress.ts";
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

export type OpenOptions = { log: Logger; clock?: Clock };

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

async function open(config: Config, { log, clock = systemClock }: OpenOptions): Promise<Opened> {
  const s3 = config.storage === "s3" ? s3Settings(config) : null;
  ensureDataDir(config.data_dir);
  const lock = acquireDataLock(config.data_dir);
  try {
    const secrets = loadSecrets(config);
    const address = {
      url: config.database_url ?? `file:${join(config.data_dir, "vodbox.db")}`,
      ...(config.database_auth_token && { authToken: config.database_auth_token }),
    };
    const migrations = embeddedNames("migrations/").map((name) => ({
      name: name.slice("migrations/".length),
      sql: embedded(name).toString("utf8"),
    }));
    await migrate({ ...address, migrations, log });
    const database = await openDatabase({ ...address, schema, log });
    let base = config.base_url ?? `http://${config.host}:${config.port}`;
    const baseUrl = () => base;
    let objects: App["objects"] = s3 && (await s3Objects(s3, config));
    if (config.storage === "local") {
      const local = localStore({
        root: join(config.data_dir, "objects"),
        signing: addressSigning(secrets.signing_secret, baseUrl),
        minFreeBytes: config.min_free_bytes,
      });
      await local.sweepTemporary();
      objects = local;
    }
    const localProof = randomName(40);
    writeSecret(join(config.data_dir, "local-proof"), localProof);
    const stopping = new AbortController();
    const signals: App["signals"] = new EventEmitter();
    // Every idle worker waits on one of these.
    signals.setMaxListeners(0);
    const app: App = {
      config,
      secrets,
      db: database.db,
      write: tellingOfDeliveries(database.write, () => signals.emit("delivery.due")),
      // A file that is named by a setting may be somebody else's too.
      commits: config.database_url === undefined ? database.commits : () => null,
      objects,
      clock,
      log,
      baseUrl,
      signals,
      stopping: stopping.signal,
      localProof,
    };
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
        await database.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** S3 appends nothing: what is no whole part yet waits on this machine's disk. Loaded where it is asked for alone. */
async function s3Objects(options: S3StoreOptions, { data_dir }: Config): Promise<ObjectStore> {
  const { s3Store } = await import("../storage/objects/s3.ts");
  const { partAppends } = await import("../storage/objects/part-appends.ts");
  const store = s3Store(options);
  return { ...store, appends: partAppends(store, join(data_dir, "growing")) };
}

/** What S3 needs. Throws one UserError that names all that is missing. */
function s3Settings(config: Config): S3StoreOptions {
  const { s3_endpoint, s3_bucket, s3_access_key_id, s3_secret_access_key } = config;
  const needed = { s3_endpoint, s3_bucket, s3_access_key_id, s3_secret_access_key };
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [envName(name)] : []));
  if (missing.length > 0) throw new UserError(`VODBOX_STORAGE=s3 also needs ${missing.join(", ")}.`, 2);
  return {
    endpoint: s3_endpoint as string,
    bucket: s3_bucket as string,
    accessKeyId: s3_access_key_id as string,
    secretAccessKey: s3_secret_access_key as string,
    region: config.s3_region,
    pathStyle: config.s3_path_style,
    prefix: config.s3_prefix === undefined ? "" : `${config.s3_prefix}/`,
    publicUrl: config.s3_public_url,
  };
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
