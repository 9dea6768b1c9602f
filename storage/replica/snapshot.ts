import { createHash } from "node:crypto";
import { type FileHandle, open, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress, createZstdDecompress } from "node:zlib";
import * as v from "valibot";
import { UserError, writeAll } from "#lib/base";
import type { ObjectStore } from "../objects/store.ts";
import { checksum, newSnapshotData, SNAPSHOTS, type SnapshotName, snapshotKey } from "./names.ts";
import { jsonOf } from "./segment.ts";

const FORMAT = 1;
const MAX_MANIFEST_BYTES = 1 << 16;
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const Manifest = v.object({
  format: v.literal(FORMAT),
  vodbox: v.string(),
  /** Key of the compressed database file, its size and checksum. */
  data: v.pipe(v.string(), v.startsWith(SNAPSHOTS)),
  bytes: whole,
  sha256: v.string(),
  /** Size of the database file. */
  database_bytes: whole,
  /**
   * The database was read while checkpoints wrote to it: it contains all segments up to `from`, some pages of later
   * ones, and is consistent once those up to `until` are applied. They contain all pages written meanwhile.
   */
  from: whole,
  until: whole,
  /** Checksum of segment `from`; empty when it is 0. */
  previous: v.string(),
});
export type SnapshotManifest = v.InferOutput<typeof Manifest>;
export type Snapshot = { name: SnapshotName; manifest: SnapshotManifest };

/** The snapshot is damaged or incomplete. */
export class DamagedSnapshot extends Error {}

export type SnapshotData = Pick<SnapshotManifest, "data" | "bytes" | "sha256" | "database_bytes">;

/** Compresses and stores the pieces of a database file. Without a manifest they are not a snapshot yet. */
export async function putSnapshotData(
  store: ObjectStore,
  { generation, pieces, signal }: { generation: string; pieces: AsyncIterable<Buffer>; signal: AbortSignal },
): Promise<SnapshotData> {
  const data = newSnapshotData(generation);
  const hash = createHash("sha256");
  const written: SnapshotData = { data, bytes: 0, sha256: "", database_bytes: 0 };
  const compressor = createZstdCompress(COMPRESSION);
  const counted = async function* () {
    for await (const piece of pieces) {
      written.database_bytes += piece.length;
      yield piece;
    }
  };
  const piped = pipeline(Readable.from(counted()), compressor, { signal });
  // Reported where it is awaited.
  piped.catch(() => {});
  const hashed = async function* () {
    for await (const chunk of compressor) {
      hash.update(chunk as Buffer);
      written.bytes += (chunk as Buffer).length;
      yield chunk as Buffer;
    }
  };
  await store.put(data, Readable.from(hashed()), { signal });
  await piped;
  return { ...written, sha256: hash.digest("hex") };
}

/** Makes stored data a snapshot. `at`: the time of segment `until`. */
export async function putManifest(
  store: ObjectStore,
  { generation, at, ...rest }: Omit<SnapshotManifest, "format"> & { generation: string; at: number },
): Promise<Snapshot> {
  const manifest = { format: FORMAT, ...rest } as const;
  const bytes = Buffer.from(JSON.stringify(manifest));
  const name = { generation, until: manifest.until, at, sum: checksum(bytes) };
  const key = snapshotKey(name);
  await store.put(key, bytes);
  return { name: { ...name, key }, manifest };
}

/** Throws DamagedSnapshot. */
export async function readManifest(store: ObjectStore, name: SnapshotName): Promise<Snapshot> {
  const object = await store.get(name.key, { start: 0, end: MAX_MANIFEST_BYTES - 1 });
  const bytes = object ? await buffer(object.body) : Buffer.alloc(0);
  if (checksum(bytes) !== name.sum) throw new DamagedSnapshot("the checksum of its manifest is wrong");
  const parsed = v.safeParse(Manifest, jsonOf(bytes));
  if (!parsed.success) throw new DamagedSnapshot("its manifest is invalid, or of a newer vodbox");
  if (parsed.output.until !== name.until) throw new DamagedSnapshot("its manifest belongs to another snapshot");
  return { name, manifest: parsed.output };
}

/** Writes the database file of a snapshot to `path`, which must not exist. Throws DamagedSnapshot. */
export async function fetchSnapshot(
  store: ObjectStore,
  { data, sha256, database_bytes }: SnapshotManifest,
  path: string,
): Promise<FileHandle> {
  const object = await store.get(data);
  if (!object) throw new DamagedSnapshot("its data are missing");
  const { bavail, bsize } = await statfs(dirname(path));
  if (database_bytes > bavail * bsize)
    throw new UserError(
      `The database has ${database_bytes} bytes, and ${dirname(path)} has space for ${bavail * bsize}; free some or choose another directory with --data.`,
    );
  const hash = createHash("sha256");
  const file = await open(path, "wx+", 0o600);
  let written = 0;
  try {
    const hashed = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    };
    await pipeline(object.body, hashed, createZstdDecompress(), async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        // A small object must not fill the disk.
        if (written + chunk.length > database_bytes) throw new DamagedSnapshot("its data are larger than it claims");
        await writeAll(file, [chunk], written);
        written += chunk.length;
      }
    });
    if (hash.digest("hex") !== sha256) throw new DamagedSnapshot("the checksum of its data is wrong");
    if (written !== database_bytes) throw new DamagedSnapshot("its data are truncated");
    return file;
  } catch (error) {
    await file.close();
    // zlib's errors: the data are not what was stored.
    if (/^(ZSTD|Z)_|ERR_ZSTD|ERR_ZLIB/.test(String((error as NodeJS.ErrnoException).code)))
      throw new DamagedSnapshot("its data cannot be decompressed", { cause: error });
    throw error;
  }
}
