import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress } from "node:zlib";
import { UserError } from "#lib/base";
import { SECRET_NAMES } from "#platform/config/secrets.ts";
import { isStorageFailure } from "#storage/db/failures.ts";
import { checkKey, InvalidKey } from "#storage/objects/keys.ts";
import { StorageFull } from "#storage/objects/store.ts";
import * as archive from "./manifest.ts";
import { ObjectIndex } from "./object-index.ts";

/** A manifest and its checksum are read into memory. */
const MAX_BYTES = 1 << 20;
/** A line of the list: a key has at most 900 bytes, each of which may be escaped as six. */
const MAX_LINE_BYTES = 16_384;

export type Unpacked = { manifest: archive.Manifest; ledger: ObjectIndex; database: string; bytes: number };

type UnpackOptions = {
  file: string;
  /** An empty directory for extracted files: database, secrets, a ledger. */
  folder: string;
  /** Receives an object; without it, objects are only verified. Must read the body to its end. */
  put?: (key: string, body: Readable) => Promise<void>;
  /** Bytes of the archive that have been read. */
  progress(done: number): void;
};

/**
 * Reads the whole archive and verifies everything against the checksums in its manifest. Nothing outside `folder` is
 * written except by `put`, which may have received objects when this throws. Throws UserError for a file that is not a
 * backup, is truncated or was altered.
 */
export async function unpack({ file, folder, put, progress }: UnpackOptions): Promise<Unpacked> {
  const ledger = new ObjectIndex(join(folder, "ledger"));
  const sums = new Map<string, string>();
  const small = new Map<string, Buffer>();
  let bytes = 0;
  const take = async (name: string, size: number, body: Readable) => {
    if (small.has(archive.MANIFEST_SUM)) throw notOurs(`it continues after ${archive.MANIFEST_SUM}`);
    if (sums.has(name)) throw notOurs(`it contains ${name} twice`);
    const counted = Readable.from(counting(body, (hash, size) => done(name, hash, size)));
    if (name.startsWith(archive.OBJECTS)) {
      const key = name.slice(archive.OBJECTS.length);
      checkKey(key);
      if (put) {
        await requireDiskSpace(folder, name, size);
        await put(key, counted);
      } else for await (const _ of counted);
    } else if (name === archive.MANIFEST || name === archive.MANIFEST_SUM) {
      small.set(name, await limited(counted));
    } else if (name === archive.DATABASE || name === archive.OBJECT_LIST || isSecret(name)) {
      const path = join(folder, name.replace("/", "-"));
      await requireDiskSpace(folder, name, size);
      await pipeline(counted, createWriteStream(path, { flags: "wx", mode: 0o600, flush: true }));
    } else throw notOurs(`it contains ${JSON.stringify(name.slice(0, 100))}`);
  };
  const done = (name: string, sha256: string, size: number) => {
    if (name.startsWith(archive.OBJECTS)) ledger.hold({ key: name.slice(archive.OBJECTS.length), bytes: size, sha256 });
    else sums.set(name, sha256);
  };
  try {
    await members(file, take, (size) => {
      bytes += size;
      progress(bytes);
    });
    const manifest = manifestOf(small, sums);
    await readList(join(folder, archive.OBJECT_LIST), ledger);
    compare(ledger);
    return { manifest, ledger, database: join(folder, archive.DATABASE), bytes };
  } catch (error) {
    ledger.close();
    throw describedError(error, file);
  }
}

async function members(
  file: string,
  take: (name: string, size: number, body: Readable) => Promise<void>,
  read: (bytes: number) => void,
) {
  const { extract: newExtract } = await import("tar-stream");
  const extract = newExtract();
  const unzip = (await isZstd(file)) ? [createZstdDecompress()] : [];
  const source = createReadStream(file, { highWaterMark: 1 << 20 });
  const piped = pipeline([source, ...unzip, extract as unknown as NodeJS.WritableStream]);
  // Attached in the same tick: otherwise the stream would flow and its data be lost.
  source.on("data", (chunk) => read(chunk.length));
  // Reported below, or by the loop.
  piped.catch(() => {});
  try {
    for await (const entry of extract) {
      const { name, type, size = 0 } = entry.header;
      if (type !== "file") throw notOurs(`${JSON.stringify(name.slice(0, 100))} is a ${type}`);
      await take(name, size, entry as unknown as Readable);
    }
  } catch (error) {
    // The error of the source or its decompression is more specific.
    if (isClosed(error)) await piped;
    throw error;
  }
  await piped;
}

const isClosed = (error: unknown) => /destroyed|premature/i.test((error as Error).message);

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

async function isZstd(file: string): Promise<boolean> {
  for await (const head of createReadStream(file, { end: 3 })) return ZSTD_MAGIC.equals(head as Buffer);
  return false;
}

/** The declared size of a member must fit on the disk before a byte of it is written. */
async function requireDiskSpace(folder: string, name: string, size: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (size <= bavail * bsize) return;
  throw new UserError(`its ${name} has ${size} bytes, and ${folder} has space for ${bavail * bsize}`);
}

async function* counting(body: Readable, done: (sha256: string, bytes: number) => void) {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of body) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    yield chunk as Buffer;
  }
  done(hash.digest("hex"), bytes);
}

async function limited(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += (chunk as Buffer).length;
    if (bytes > MAX_BYTES) throw notOurs("its manifest is too large");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

const isSecret = (name: string) => SECRET_NAMES.some((secret) => archive.secretMember(secret) === name);

/** Checks the manifest against its own checksum, and the members against the checksums in it. */
function manifestOf(small: Map<string, Buffer>, sums: Map<string, string>): archive.Manifest {
  const bytes = small.get(archive.MANIFEST);
  const sum = small.get(archive.MANIFEST_SUM);
  if (!bytes || !sum) throw new UserError("it is truncated");
  if (sum.toString() !== `${sums.get(archive.MANIFEST)}  ${archive.MANIFEST}\n`) throw altered(archive.MANIFEST);
  const manifest = archive.readManifest(bytes);
  for (const name of [archive.DATABASE, archive.OBJECT_LIST])
    if (!(name in manifest.sha256)) throw notOurs(`its manifest does not list ${name}`);
  for (const [name, expected] of Object.entries(manifest.sha256)) {
    if (!sums.has(name)) throw new UserError(`it lacks ${name}`);
    if (sums.get(name) !== expected) throw altered(name);
  }
  for (const name of manifest.secrets)
    if (!(archive.secretMember(name) in manifest.sha256)) throw new UserError(`it lacks ${archive.secretMember(name)}`);
  for (const name of sums.keys())
    if (name !== archive.MANIFEST && name !== archive.MANIFEST_SUM && !(name in manifest.sha256))
      throw notOurs(`its manifest does not list ${name}`);
  return manifest;
}

async function readList(path: string, ledger: ObjectIndex): Promise<void> {
  for await (const line of lines(path)) ledger.list(archive.readListed(line));
}

/** node:readline would buffer a line of any length. */
async function* lines(path: string): AsyncGenerator<string> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(path)) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    let from = 0;
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10, from)) {
      yield rest.toString("utf8", from, end);
      from = end + 1;
    }
    rest = rest.subarray(from);
    if (rest.length > MAX_LINE_BYTES) throw notOurs("its list of objects has a line that is too long");
  }
  if (rest.length > 0) yield rest.toString();
}

function compare(ledger: ObjectIndex): void {
  const { altered: changed, lost, unlisted } = ledger.differences();
  if (changed.key !== undefined) throw altered(archive.OBJECTS + changed.key);
  if (lost.key !== undefined) throw new UserError(`it lacks ${archive.OBJECTS}${lost.key}`);
  if (unlisted.key !== undefined) throw notOurs(`its list does not contain ${archive.OBJECTS}${unlisted.key}`);
}

const altered = (name: string) => new UserError(`${name} was altered: its SHA-256 differs`);
const notOurs = (why: string) => new UserError(`it is not a vodbox backup: ${why}`);

/** A sentence that names the file, for any error of the streams, the archive format or its content. */
function describedError(error: unknown, file: string): unknown {
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return new UserError(`The file ${file} does not exist.`);
  if (error instanceof StorageFull || isStorageFailure(error))
    return new UserError(`There is not enough space to restore ${file} (${message.replace(/\.$/, "")}).`);
  if (error instanceof UserError) return new UserError(`${file} cannot be restored: ${message.replace(/\.$/, "")}.`);
  if (error instanceof InvalidKey || code.startsWith("SQLITE_CONSTRAINT"))
    return new UserError(`${file} cannot be restored: it is not a vodbox backup (${message.replace(/\.$/, "")}).`);
  if (
    /unexpected end|invalid (tar )?header|header exceeds|premature|destroyed|writable stream closed/i.test(message) ||
    code.startsWith("ZSTD")
  )
    return new UserError(
      `${file} cannot be restored: it is truncated, altered or not a backup (${message.replace(/\.$/, "")}).`,
    );
  return error;
}
