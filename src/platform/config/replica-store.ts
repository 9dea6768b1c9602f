import { statSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { UserError } from "#lib/base";
import { makeFolder } from "#lib/executable";
import { localStore } from "#storage/objects/local.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { urlSigning } from "#storage/objects/url-signing.ts";
import { SECRETS, SEGMENTS, SNAPSHOTS } from "#storage/replica/names.ts";
import { databaseFileOf } from "./database-file.ts";
import type { Config } from "./load.ts";
import { replicaLocation } from "./replica-setting.ts";
import { envName } from "./settings.ts";

const PRIVATE = [SEGMENTS, SNAPSHOTS, SECRETS];

/** Checks the settings of the replica. Throws UserError. */
export function checkReplica(config: Config): void {
  const { replica, data_dir } = config;
  if (replica === undefined) return;
  if (databaseFileOf(config) === null)
    throw new UserError(
      "VODBOX_REPLICA needs a local database: a remote server (VODBOX_DATABASE_URL) replicates its own data. Unset one of the two.",
      2,
    );
  const location = replicaLocation(replica);
  if (location?.kind !== "local") return void credentialsOf(config);
  if (relative(resolve(data_dir), location.path).split(sep)[0] !== "..")
    throw new UserError(
      `VODBOX_REPLICA ${replica} is in the data directory and would be lost with it; choose another directory or s3://BUCKET/PREFIX.`,
      2,
    );
}

/**
 * Opens the store of `replica`, which is written as the setting. With `onlyReads` a directory is not created, and must
 * exist. Throws UserError.
 */
export async function openReplicaStore(
  config: Config,
  replica: string,
  { onlyReads = false } = {},
): Promise<ObjectStore> {
  const location = replicaLocation(replica);
  if (location === null) throw new UserError(`The replica ${replica} must be s3://BUCKET/PREFIX or a directory.`, 2);
  if (location.kind === "local") {
    if (onlyReads && !statSync(location.path, { throwIfNoEntry: false })?.isDirectory())
      throw new UserError(`The directory ${location.path} of the replica does not exist.`);
    // Object files are readable by mode, and these contain everything that is secret.
    if (!onlyReads) for (const name of PRIVATE) makeFolder(join(location.path, name));
    // This store creates no URLs.
    const store = localStore({ root: location.path, signing: urlSigning("", () => "") });
    if (!onlyReads) await store.sweepTemporary();
    return store;
  }
  const { s3Store } = await import("#storage/objects/s3.ts");
  return s3Store({
    ...credentialsOf(config),
    bucket: location.bucket,
    prefix: location.prefix,
    region: config.replica_s3_region ?? config.s3_region,
    pathStyle: config.replica_s3_path_style ?? config.s3_path_style,
  });
}

/** Each setting defaults to that of the media. */
function credentialsOf(config: Config) {
  const endpoint = config.replica_s3_endpoint ?? config.s3_endpoint;
  const accessKeyId = config.replica_s3_access_key_id ?? config.s3_access_key_id;
  const secretAccessKey = config.replica_s3_secret_access_key ?? config.s3_secret_access_key;
  if (endpoint !== undefined && accessKeyId !== undefined && secretAccessKey !== undefined)
    return { endpoint, accessKeyId, secretAccessKey };
  const values = {
    replica_s3_endpoint: endpoint,
    replica_s3_access_key_id: accessKeyId,
    replica_s3_secret_access_key: secretAccessKey,
  };
  const missing = Object.entries(values).filter(([, value]) => value === undefined);
  throw new UserError(
    `A replica on S3 needs ${missing.map(([name]) => envName(name)).join(", ")} (or the same without REPLICA_).`,
    2,
  );
}
