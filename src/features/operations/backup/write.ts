import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, existsSync, lstatSync, readFileSync, statSync } from "node:fs";
import { open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdCompress } from "node:zlib";
import type { Pack } from "tar-stream";
import { UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { SECRET_NAMES } from "#platform/config/secrets.ts";
import { copyDatabase, describeDatabase, storageLocationIn } from "#storage/db/copy.ts";
import { isStorageFailure } from "#storage/db/failures.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import * as archive from "./manifest.ts";
import { ObjectIndex } from "./object-index.ts";
import { referencedObjects } from "./references.ts";

export type BackupOptions = {
  config: Config;
  /** The local database. */
  database: string;
  /** The output file; the extension `.zst` compresses it. */
  file: string;
  version: string;
  withObjects: boolean;
  withSecrets: boolean;
  /** An existing file is replaced. */
  force: boolean;
  /** The object storage that `place` names; null when object storage is off. */
  openObjects(place: ReturnType<typeof storageLocationIn>): Promise<ObjectStore | null>;
  /** Bytes of objects copied, and in total. */
  progress(done: number, of: number): void;
  /** Aborts when the removal hold has been lost. */
  signal: AbortSignal;
};

export type BackupSummary = { file: string; bytes: number } & Omit<archive.Manifest, "format" | "sha256">;

/**
 * Writes one tar archive of the database, the secrets and, optionally, the objects. The file is either complete or
 * absent: it is written under a temporary name, synced and renamed. Memory does not grow with the amount of data.
 * Throws UserError when `file` exists, its directory is missing, it is not a regular file, or the disk is full; nothing
 * remains then.
 */
export async function writeBackup(options: BackupOptions): Promise<BackupSummary> {
  const { file, force } = options;
  requireWritable(file, force);
  const partial = `${file}.partial`;
  const work = { copy: `${partial}.db`, ledger: `${partial}.ledger`, list: `${partial}.list` };
  const all = [partial, ...Object.values(work)];
  const clean = async () => {
    for (const path of all) for (const end of ["", "-journal", "-wal", "-shm"]) await rm(path + end, { force: true });
  };
  await clean();
  try {
    const manifest = await writePartial(options, partial, work);
    const { size } = await stat(partial);
    await rename(partial, file);
    await syncFolder(dirname(file));
    return { file, bytes: size, ...manifest };
  } catch (error) {
    if (!isStorageFailure(error)) throw error;
    throw new UserError(
      `There is not enough space for ${file}: it needs twice the size of the database, plus the objects with --objects. Nothing was written.`,
    );
  } finally {
    await clean();
  }
}

/** A rename would replace a device, a pipe or a symlink, which --force does not mean. */
function requireWritable(file: string, force: boolean): void {
  const folder = dirname(file);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new UserError(`The directory ${folder} does not exist; create it or choose another.`);
  const info = lstatSync(file, { throwIfNoEntry: false });
  if (!info) return;
  if (info.isSymbolicLink()) throw new UserError(`${file} is a symbolic link; specify its target instead.`);
  if (!info.isFile()) throw new UserError(`${file} is not a regular file; choose another name.`);
  if (!force) throw new UserError(`${file} exists; choose another name, or overwrite it with --force.`);
}

type Work = { copy: string; ledger: string; list: string };

async function writePartial(options: BackupOptions, partial: string, work: Work) {
  const { config, database, version, withObjects, withSecrets, signal } = options;
  // Created before SQLite could create it with another mode.
  await (await open(work.copy, "wx", 0o600)).close();
  await copyDatabase(database, work.copy);
  const createdAt = new Date().toISOString();
  const { schema, counts } = describeDatabase(work.copy);
  const objects = await options.openObjects(storageLocationIn(work.copy));
  const { pack: newPack } = await import("tar-stream");
  const pack = newPack();
  const out = createWriteStream(partial, { flags: "wx", mode: 0o600, flush: true });
  const compressor = options.file.endsWith(".zst") ? [createZstdCompress()] : [];
  const written = pipeline([pack as unknown as Readable, ...compressor, out], { signal });
  // Reported where it is awaited.
  written.catch((error) => pack.destroy(error));
  const sha256: Record<string, string> = {};
  const ledger = new ObjectIndex(work.ledger);
  try {
    sha256[archive.DATABASE] = await addFile(pack, archive.DATABASE, work.copy);
    const secrets = withSecrets ? secretsOf(config) : [];
    for (const { name, bytes } of secrets)
      sha256[archive.secretMember(name)] = await addBytes(pack, archive.secretMember(name), bytes);
    const totals = { count: 0, bytes: 0, missing: 0 };
    const copied = objects
      ? listObjects({ ...options, objects, ledger, copy: work.copy, totals, pack: withObjects ? pack : null })
      : [];
    await pipeline(Readable.from(copied), createWriteStream(work.list, { flags: "wx", mode: 0o600 }));
    sha256[archive.OBJECT_LIST] = await addFile(pack, archive.OBJECT_LIST, work.list);
    const manifest = {
      vodbox: version,
      created_at: createdAt,
      schema,
      counts,
      storage: objects?.kind ?? ("none" as const),
      with_objects: withObjects && objects !== null,
      secrets: secrets.map(({ name }) => name),
      objects: totals,
    };
    const bytes = archive.writeManifest({ ...manifest, sha256 });
    const sum = await addBytes(pack, archive.MANIFEST, bytes);
    await addBytes(pack, archive.MANIFEST_SUM, Buffer.from(`${sum}  ${archive.MANIFEST}\n`));
    pack.finalize();
    await written;
    return manifest;
  } catch (error) {
    pack.destroy();
    throw await written.then(
      () => error,
      (cause) => (signal.aborted ? signal.reason : isClosing(error) ? cause : error),
    );
  } finally {
    ledger.close();
  }
}

const isClosing = (error: unknown) => /destroyed|closed|premature/i.test((error as Error).message);

type Listing = BackupOptions & {
  objects: ObjectStore;
  ledger: ObjectIndex;
  copy: string;
  totals: archive.Manifest["objects"];
  pack: Pack | null;
};

/** Writes a line for each object that the database copy references; with `pack` also adds its bytes. */
async function* listObjects({
  objects,
  ledger,
  copy,
  totals,
  pack,
  progress,
  signal,
}: Listing): AsyncGenerator<string> {
  for await (const { key, bytes, required } of referencedObjects(copy, objects)) {
    signal.throwIfAborted();
    const size = bytes ?? (await objects.head(key))?.bytes ?? null;
    ledger.want(key, { bytes: size, required });
  }
  const total = ledger.wantedBytes();
  for (const { key, required } of ledger.wanted()) {
    signal.throwIfAborted();
    const listed = await (pack ? copyObject(objects, pack, key) : headOf(objects, key));
    if (!listed && !required) continue;
    totals.count++;
    totals.bytes += listed?.bytes ?? 0;
    if (!listed) totals.missing++;
    progress(totals.bytes, total);
    yield `${JSON.stringify(listed ?? { key, missing: true })}\n`;
  }
}

async function headOf(objects: ObjectStore, key: string) {
  const info = await objects.head(key);
  return info && { key, bytes: info.bytes, etag: info.etag };
}

async function copyObject(objects: ObjectStore, pack: Pack, key: string) {
  const object = await objects.get(key);
  if (!object) return null;
  const { bytes, etag } = object.info;
  return { key, bytes, etag, sha256: await addStream(pack, archive.OBJECTS + key, { bytes, body: object.body }) };
}

async function addStream(
  pack: Pack,
  name: string,
  { bytes, body }: { bytes: number; body: Readable },
): Promise<string> {
  const hash = createHash("sha256");
  const entry = pack.entry({ name, size: bytes, mode: 0o600 });
  await pipeline(
    body,
    async function* (chunks) {
      for await (const chunk of chunks) {
        hash.update(chunk as Buffer);
        yield chunk;
      }
    },
    entry as unknown as NodeJS.WritableStream,
  );
  return hash.digest("hex");
}

const addBytes = (pack: Pack, name: string, bytes: Buffer) =>
  addStream(pack, name, { bytes: bytes.length, body: Readable.from([bytes]) });

const addFile = async (pack: Pack, name: string, path: string) =>
  addStream(pack, name, { bytes: (await stat(path)).size, body: createReadStream(path) });

/** Only secrets in the data directory; those in settings are the operator's to keep. */
function secretsOf(config: Config) {
  return SECRET_NAMES.flatMap((name) => {
    const path = join(config.data_dir, "secrets", name);
    return existsSync(path) ? [{ name, bytes: readFileSync(path) }] : [];
  });
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
