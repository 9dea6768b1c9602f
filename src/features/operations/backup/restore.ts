import { mkdtempSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { UserError } from "#lib/base";
import { contentTypeOf } from "#model/media-types.ts";
import type { Config } from "#platform/config/load.ts";
import { storeDriver } from "#platform/config/stores.ts";
import { clearStorageLocation, faultsOf, storageLocationIn } from "#storage/db/copy.ts";
import { type Migration, NewerDatabase } from "#storage/db/migrate.ts";
import { listAll } from "#storage/objects/list-all.ts";
import { localStore } from "#storage/objects/local.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { urlSigning } from "#storage/objects/url-signing.ts";
import { intoEmptyDirectory, requireLocalDatabase } from "./empty-directory.ts";
import type * as archive from "./manifest.ts";
import { type Unpacked, unpack } from "./read.ts";
import { namedObjects } from "./references.ts";

export type RestoreOptions = {
  config: Config;
  file: string;
  migrations: Migration[];
  /** The object storage of the settings, unless `place` overrides it; null when object storage is off. */
  openObjects(place: ReturnType<typeof storageLocationIn>): Promise<ObjectStore | null>;
  progress(done: number): void;
};

export type Checked = {
  manifest: archive.Manifest;
  /** Faults, one sentence each; empty when everything can be restored. */
  faults: string[];
  /** Objects that were already missing from storage at the time of the backup. */
  missing: number;
};

/** The storage that a restore wrote to; null when the archive contains no objects. */
export type Restored = Checked & { storage: ObjectStore["kind"] | null };

const FAULTS_SHOWN = 5;

/** Verifies a backup and changes nothing. Objects that the archive does not contain are looked up in storage. */
export async function checkBackup(options: RestoreOptions): Promise<Checked> {
  const folder = mkdtempSync(join(tmpdir(), "vodbox-check-"));
  try {
    const unpacked = await unpack({ ...options, folder });
    try {
      return await examine(options, unpacked);
    } finally {
      unpacked.ledger.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Restores an empty data directory from a backup. Everything is extracted to a work directory and verified first; the
 * database is moved last, so a directory with a database is complete. After an interruption it can be repeated: remains
 * of the first attempt are deleted. Objects in the archive go to the storage of the settings, wherever they were at the
 * time of the backup.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { config, openObjects } = options;
  const dir = config.data_dir;
  requireLocalDatabase(config);
  // Missing settings are reported before the archive is read.
  const isRemote = config.storage !== "none" && !storeDriver(config.storage).isInDataDir;
  const remote = isRemote ? await openObjects(undefined) : null;
  return intoEmptyDirectory(dir, async (work) => {
    const store = localStore({
      root: join(work, "objects"),
      // This store creates no URLs.
      signing: urlSigning("", () => ""),
      minFreeBytes: config.min_free_bytes,
    });
    const put = async (key: string, body: Readable) =>
      void (await store.put(key, body, { contentType: contentTypeOf(key) }));
    const unpacked = await unpack({ ...options, folder: work, put });
    const { manifest, database, ledger } = unpacked;
    try {
      const faults = databaseFaults(options, unpacked);
      if (faults.length > 0) throw new UserError(`The database in ${options.file} is damaged: ${faults.join("; ")}.`);
      if (manifest.with_objects) {
        // The record of an old migration would override the settings and name stores that no longer apply.
        await clearStorageLocation(database);
        if (remote) await carry(store, remote);
        else await rename(join(work, "objects"), join(dir, "objects"));
      }
    } finally {
      ledger.close();
    }
    const storage = manifest.with_objects ? (remote ?? store).kind : null;
    return {
      database,
      secrets: manifest.secrets,
      result: { manifest, faults: [], missing: manifest.objects.missing, storage },
    };
  });
}

async function carry(from: ObjectStore, to: ObjectStore): Promise<void> {
  for await (const { key } of listAll(from, "")) {
    const object = await from.get(key);
    if (object) await to.put(key, object.body, { contentType: contentTypeOf(key) });
  }
}

/** Throws UserError for the database of a newer vodbox. */
function databaseFaults({ file, migrations }: RestoreOptions, { database, manifest }: Unpacked): string[] {
  try {
    return faultsOf(database, migrations);
  } catch (error) {
    if (!(error instanceof NewerDatabase)) throw error;
    throw new UserError(
      `${file} was written by a newer vodbox (${manifest.vodbox}); restore it with that version or a later one.`,
    );
  }
}

async function examine(options: RestoreOptions, unpacked: Unpacked): Promise<Checked> {
  const { manifest, ledger, database } = unpacked;
  const faults = databaseFaults(options, unpacked);
  for (const { key, required } of namedObjects(database)) ledger.want(key, { required });
  const { unnamed } = ledger.differences();
  if (manifest.storage !== "none" && unnamed.count > 0)
    faults.push(
      `the list of objects lacks ${unnamed.count} objects referenced by the database, such as ${unnamed.key}`,
    );
  const missing: string[] = [];
  let count = 0;
  const storage = manifest.with_objects ? null : await options.openObjects(storageLocationIn(database));
  if (!manifest.with_objects) {
    for (const { key, bytes } of ledger.elsewhere()) {
      const info = await storage?.head(key);
      if (info?.bytes === bytes) continue;
      if (++count <= FAULTS_SHOWN) missing.push(key);
    }
  }
  if (count > 0)
    faults.push(
      `${count} of ${manifest.objects.count} objects are missing or changed in storage and not in the archive: ${missing.join(", ")}${count > FAULTS_SHOWN ? " …" : ""}`,
    );
  return { manifest, faults, missing: manifest.objects.missing };
}
