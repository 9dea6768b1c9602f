import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { clearStorageLocation, faultsOf, storageLocationIn } from "../../../../storage/db/copy.ts";
import { acquireDataLock, isLocked } from "../../../../storage/db/lock.ts";
import { type Migration, NewerDatabase } from "../../../../storage/db/migrate.ts";
import { localStore } from "../../../../storage/objects/local.ts";
import type { ObjectStore } from "../../../../storage/objects/store.ts";
import type { Config } from "../../../config/load.ts";
import { ensureDataDir } from "../../../config/secrets.ts";
import { UserError } from "../../../lib/errors.ts";
import { contentTypeOf } from "../../../lib/media-types.ts";
import { urlSigning } from "../../../lib/url-signing.ts";
import type * as archive from "./manifest.ts";
import { type Unpacked, unpack } from "./read.ts";
import { namedObjects } from "./references.ts";
import { isRestoreUnfinished, WORK } from "./resume-restore.ts";
import { syncFolder } from "./write.ts";

export type RestoreOptions = {
  config: Config;
  file: string;
  migrations: Migration[];
  /** The storage of the settings, unless `place` says otherwise; null where object storage is off. */
  openObjects(place: ReturnType<typeof storageLocationIn>): Promise<ObjectStore | null>;
  progress(done: number): void;
};

export type Checked = {
  manifest: archive.Manifest;
  /** What is wrong, a sentence each; none: all can be restored. */
  faults: string[];
  /** Objects that were missing from storage already when the backup was made. */
  missing: number;
};

/** What was put where by a restore; null where the archive holds no objects. */
export type Restored = Checked & { storage: ObjectStore["kind"] | null };

const isNothing = (name: string) => /^(server\.(lock|pid).*|lost\+found)$/.test(name) || name === WORK;
const FAULTS_TOLD = 5;

/** Reads everything and changes nothing. Objects that the archive does not hold are looked for in storage. */
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
 * Makes an empty data directory what it was. All is unpacked beside its place and compared first; the database is moved
 * last, so that a directory with one is whole. Again after an interruption: what the first try left is removed. Objects
 * that the archive holds go to the storage of the settings, wherever they lay when it was made.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { config, openObjects } = options;
  const dir = config.data_dir;
  if (config.database_url !== undefined)
    throw new UserError(
      "A backup is restored to a database in the data directory; leave VODBOX_DATABASE_URL out, and set it again once the database is in its place.",
    );
  // What its settings lack is told before the archive is read.
  const s3 = config.storage === "s3" ? await openObjects(undefined) : null;
  ensureDataDir(dir);
  // Looked at before the lock is made, which would stay in a folder that is somebody else's.
  if (!isRestoreUnfinished(dir) && !isLocked(dir)) await requireEmpty(dir);
  const lock = acquireDataLock(dir);
  const work = join(dir, WORK);
  try {
    await requireEmpty(dir);
    await rm(work, { recursive: true, force: true });
    await mkdir(work, { mode: 0o700 });
    const store = localStore({
      root: join(work, "objects"),
      // It gives no addresses.
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
        // The record of an old migration would win over the settings, and speak of places where nothing is.
        await clearStorageLocation(database);
        if (s3) await carry(store, s3);
        else await rename(join(work, "objects"), join(dir, "objects"));
      }
      if (manifest.secrets.length > 0) await mkdir(join(dir, "secrets"), { mode: 0o700 });
      for (const name of manifest.secrets) await rename(join(work, `secrets-${name}`), join(dir, "secrets", name));
      if (manifest.secrets.length > 0) await syncFolder(join(dir, "secrets"));
      await syncFolder(dir);
      await rename(database, join(dir, "vodbox.db"));
      await syncFolder(dir);
    } finally {
      ledger.close();
    }
    await rm(work, { recursive: true, force: true });
    const storage = manifest.with_objects ? (s3?.kind ?? "local") : null;
    return { manifest, faults: [], missing: manifest.objects.missing, storage };
  } catch (error) {
    // Without a database there is nothing that a later try could take for whole.
    if (!existsSync(join(dir, "vodbox.db"))) await clear(dir).catch(() => {});
    throw error;
  } finally {
    lock.release();
  }
}

async function requireEmpty(dir: string): Promise<void> {
  if (isRestoreUnfinished(dir)) await clear(dir);
  const found = readdirSync(dir).filter((name) => !isNothing(name));
  if (found.length > 0)
    throw new UserError(
      `The data directory ${dir} is not empty: it holds ${found.slice(0, 3).join(", ")}${found.length > 3 ? " …" : ""}. Restore to an empty one, named with --data.`,
    );
}

async function clear(dir: string): Promise<void> {
  if (!existsSync(join(dir, WORK))) return;
  for (const name of ["objects", "secrets", WORK]) await rm(join(dir, name), { recursive: true, force: true });
}

async function carry(from: ObjectStore, to: ObjectStore): Promise<void> {
  let cursor: string | null = null;
  do {
    const page = await from.list("", { ...(cursor !== null && { cursor }) });
    for (const { key } of page.objects) {
      const found = await from.get(key);
      if (found) await to.put(key, found.body, { contentType: contentTypeOf(key) });
    }
    cursor = page.cursor;
  } while (cursor !== null);
}

/** Throws UserError for the database of a newer vodbox. */
function databaseFaults({ file, migrations }: RestoreOptions, { database, manifest }: Unpacked): string[] {
  try {
    return faultsOf(database, migrations);
  } catch (error) {
    if (!(error instanceof NewerDatabase)) throw error;
    throw new UserError(
      `${file} holds the database of a newer vodbox, ${manifest.vodbox}: restore it with that version, or a later one.`,
    );
  }
}

async function examine(options: RestoreOptions, unpacked: Unpacked): Promise<Checked> {
  const { manifest, ledger, database } = unpacked;
  const faults = databaseFaults(options, unpacked);
  for (const { key, required } of namedObjects(database)) ledger.want(key, { required });
  const { unnamed } = ledger.differences();
  if (manifest.storage !== "none" && unnamed.count > 0)
    faults.push(`the list of objects lacks ${unnamed.count} that the database names, such as ${unnamed.key}`);
  const lost: string[] = [];
  let count = 0;
  const storage = manifest.with_objects ? null : await options.openObjects(storageLocationIn(database));
  if (!manifest.with_objects) {
    for (const { key, bytes } of ledger.elsewhere()) {
      const info = await storage?.head(key);
      if (info?.bytes === bytes) continue;
      if (++count <= FAULTS_TOLD) lost.push(key);
    }
  }
  if (count > 0)
    faults.push(
      `${count} of ${manifest.objects.count} objects are not in storage as they were, and not in the archive: ${lost.join(", ")}${count > FAULTS_TOLD ? " …" : ""}`,
    );
  return { manifest, faults, missing: manifest.objects.missing };
}
