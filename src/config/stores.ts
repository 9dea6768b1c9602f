import { join } from "node:path";
import type { StoreProcesses } from "../../storage/objects/folders.ts";
import { localStore } from "../../storage/objects/local.ts";
import type { S3StoreOptions } from "../../storage/objects/s3.ts";
import type { ObjectStore } from "../../storage/objects/store.ts";
import { UserError } from "../lib/errors.ts";
import { urlSigning } from "../lib/url-signing.ts";
import type { Config } from "./load.ts";
import { envName } from "./settings.ts";

export type StoreKind = ObjectStore["kind"];
/** The store of a kind as the settings describe it, always the same one. Throws a UserError that names what is missing. */
export type OpenStore = (kind: StoreKind) => Promise<ObjectStore>;

type StoresOptions = {
  onlyReads?: boolean;
  /** The place of this process among several on the data directory. */
  clusterWorker?: StoreProcesses | null;
};

export function storesOf(
  config: Config,
  signingSecret: string,
  baseUrl: () => string,
  options: StoresOptions = {},
): OpenStore {
  const opened = new Map<StoreKind, Promise<ObjectStore>>();
  return (kind) => {
    const known = opened.get(kind);
    if (known) return known;
    const opening = kind === "s3" ? s3Objects(config, options) : localObjects(config, signingSecret, baseUrl, options);
    opened.set(kind, opening);
    // What was missing may be there the next time.
    opening.catch(() => opened.delete(kind));
    return opening;
  };
}

async function localObjects(
  config: Config,
  signingSecret: string,
  baseUrl: () => string,
  { onlyReads = false, clusterWorker }: StoresOptions,
): Promise<ObjectStore> {
  const local = localStore({
    root: join(config.data_dir, "objects"),
    signing: urlSigning(signingSecret, baseUrl),
    minFreeBytes: config.min_free_bytes,
    storeProcesses: clusterWorker ?? undefined,
  });
  // Whoever only reads may not be the only one: what looks left behind may be under way.
  if (!onlyReads) await local.sweepTemporary();
  return local;
}

/** S3 appends nothing: what is no whole part yet waits on this machine's disk. Loaded where it is asked for alone. */
async function s3Objects(config: Config, { clusterWorker }: StoresOptions): Promise<ObjectStore> {
  const options = s3Settings(config);
  const { s3Store } = await import("../../storage/objects/s3.ts");
  const { partAppends } = await import("../../storage/objects/part-appends.ts");
  const store = s3Store(options);
  const minFreeBytes = config.min_free_bytes;
  const appends = partAppends(store, join(config.data_dir, "growing"), { minFreeBytes, take: clusterWorker?.take });
  return {
    ...store,
    appends,
    async delete(key) {
      await appends.discard(key);
      await store.delete(key);
    },
  };
}

/** What S3 needs. Throws one UserError that names all that is missing. */
export function s3Settings(config: Config): S3StoreOptions {
  const { s3_endpoint, s3_bucket, s3_access_key_id, s3_secret_access_key } = config;
  const needed = { s3_endpoint, s3_bucket, s3_access_key_id, s3_secret_access_key };
  const missing = Object.entries(needed).flatMap(([name, value]) => (value === undefined ? [envName(name)] : []));
  if (missing.length > 0) {
    const why = config.storage === "s3" ? "VODBOX_STORAGE=s3 also" : "Storage on S3";
    throw new UserError(`${why} needs ${missing.join(", ")}.`, 2);
  }
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
