import { existsSync, mkdtempSync, readdirSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { faultsOf, storagePlaceIn } from "../../../../storage/db/copy.ts";
import { acquireDataLock } from "../../../../storage/db/lock.ts";
import type { Migration } from "../../../../storage/db/migrate.ts";
import { localStore } from "../../../../storage/objects/local.ts";
import type { ObjectStore } from "../../../../storage/objects/store.ts";
import type { Config } from "../../../config/load.ts";
import { ensureDataDir } from "../../../config/secrets.ts";
import { UserError } from "../../../lib/errors.ts";
import { contentTypeOf } from "../../../lib/media-types.ts";
import { addressSigning } from "../../../lib/signing.ts";
import type * as archive from "./manifest.ts";
import { type Unpacked, unpack } from "./read.ts";
import { namedObjects } from "./references.ts";
import { syncFolder } from "./write.ts";

export type RestoreOptions = {
  config: Config;
  file: string;
  migrations: Migration[];
  /** Null where object storage is off. */
  openObjects(place: ReturnType<typeof storagePlaceIn>): Promise<ObjectStore | null>;
  progress(done: number): void;
};

export type Checked = {
  manifest: archive.Manifest;
  /** What is wrong, a sentence each; none: all can be restored. */
  faults: string[];
  /** Objects that were missing from storage already when the backup was made. */
  missing: number;
};

/** Unpacked here and moved from here; an interrupted restore is known by it. */
const WORK = ".restoring";
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
 * last, so that a directory with one is whole. Again after an interruption: what the first try left is removed.
 */
export async function restoreBackup(options: RestoreOptions): Promise<Checked> {
  const { config, migrations, openObjects } = options;
  const dir = config.data_dir;
  if (config.database_url !== undefined)
    throw new UserError(
      "A backup is restored to a database in the data directory; leave VODBOX_DATABASE_URL out, and set it again once the database is in its place.",
    );
  ensureDataDir(dir);
  const lock = acquireDataLock(dir);
  const work = join(dir, WORK);
  try {
    await requireEmpty(dir);
    await rm(work, { recursive: true, force: true });
    await mkdir(work, { mode: 0o700 });
    const store = localStore({
      root: join(work, "objects"),
      // It gives no addresses.
      signing: addressSigning("", () => ""),
      minFreeBytes: config.min_free_bytes,
    });
    const put = async (key: string, body: Readable) =>
      void (await store.put(key, body, { contentType: contentTypeOf(key) }));
    const unpacked = await unpack({ ...options, folder: work, put });
    const { manifest, database, ledger } = unpacked;
    try {
      const faults = faultsOf(database, migrations);
      if (faults.length > 0) throw new UserError(`The database in ${options.file} is damaged: ${faults.join("; ")}.`);
      const target = manifest.with_objects ? await openObjects(storagePlaceIn(database)) : null;
      if (target?.kind === "s3") await carry(store, target);
      else if (manifest.with_objects) await rename(join(work, "objects"), join(dir, "objects"));
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
    return { manifest, faults: [], missing: manifest.objects.missing };
  } catch (error) {
    // Without a database there is nothing that a later try could take for whole.
    if (!existsSync(join(dir, "vodbox.db"))) await clear(dir).catch(() => {});
    throw error;
  } finally {
    lock.release();
  }
}

async function requireEmpty(dir: string): Promise<void> {
  // Left by a restore that died before its last step.
  if (existsSync(join(dir, WORK)) && !existsSync(join(dir, "vodbox.db"))) await clear(dir);
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

async function examine(options: RestoreOptions, { manifest, ledger, database }: Unpacked): Promise<Checked> {
  const faults = faultsOf(database, options.migrations);
  for (const { key, required } of namedObjects(database)) ledger.want(key, { required });
  const { unnamed } = ledger.differences();
  if (manifest.storage !== "none" && unnamed.count > 0)
    faults.push(`the list of objects lacks ${unnamed.count} that the database names, such as ${unnamed.key}`);
  const lost: string[] = [];
  let count = 0;
  const storage = manifest.with_objects ? null : await options.openObjects(storagePlaceIn(database));
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
