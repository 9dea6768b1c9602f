import { Readable } from "node:stream";
import { LRUCache } from "lru-cache";
import { forApp } from "#app.ts";
import { HttpError, notFound, setTimeout, sha256 } from "#lib/base";
import { renumberSegment } from "#lib/isobmff";
import { type ObjectResponse, serveObject } from "#platform/http/serve-object.ts";
import { cacheUntilCommit } from "#storage/db/commit-cache.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import type { ByteRange, ObjectInfo, ObjectStore } from "#storage/objects/store.ts";
import { isAudioOnly, type StaticSize } from "../assets/static-names.ts";
import { playedTracks } from "../tracks/audio/delivery.ts";
import { findParts, MAX_AUDIO_SEGMENT_BYTES, type StaticFile } from "./find-parts.ts";
import { staticRenditionsOf } from "./queries.ts";

/** Below `/media/<asset>/`. */
export const STATIC = "static/";
const REMEMBERED_BYTES = 16 * 2 ** 20;
const BYTES_OF_PART = 150;
const REMEMBERED_SIZES = 10_000;
/** A file that cannot be joined now may have all of its parts later: the doctor repairs what is missing. */
const MISSING_MS = 60_000;
/** Records of assets must not depend on storage that is slow. */
const MAX_WAIT_MS = 5_000;

export type StaticDelivery = Omit<ObjectResponse, "key" | "contentType"> & { asset: AssetRow; name: string };

/** Delivers the files of static renditions, with ranges: nothing but what they consist of is stored. */
export const staticFiles = forApp((app) => {
  const files = new LRUCache<string, Promise<StaticFile>>({ maxSize: REMEMBERED_BYTES });
  const wanted = cacheUntilCommit(app.commits, (assetId: number) => staticRenditionsOf(app.db, assetId));

  const sizes = new LRUCache<string, { bytes: number | null }>({ max: REMEMBERED_SIZES });

  /** Changes with the bytes of the file. */
  async function versionOf({ id, mediaPrefix, readyAt }: AssetRow, name: string): Promise<string> {
    const audio = (await playedTracks(app, id)).map((row) => `${row.id} ${row.updatedAt}`);
    return sha256([mediaPrefix, readyAt, name, ...audio].join(" ")).slice(0, 32);
  }

  /** Null where there is no file. Throws the errors of storage. */
  async function computeSize(asset: AssetRow, name: string, version: string): Promise<number | null> {
    const { objects } = app;
    try {
      const bytes = objects ? (await fileOf(objects, asset, name, version)).bytes : null;
      sizes.set(version, { bytes });
      return bytes;
    } catch (error) {
      if (!(error instanceof HttpError && error.status === 404)) throw error;
      sizes.set(version, { bytes: null }, { ttl: MISSING_MS });
      return null;
    }
  }

  async function fileOf(objects: ObjectStore, asset: AssetRow, name: string, key: string): Promise<StaticFile> {
    const known = files.get(key);
    if (known) return known;
    const found = findParts(app, objects, asset, name);
    files.set(key, found, { size: BYTES_OF_PART });
    try {
      const file = await found;
      files.set(key, found, { size: file.init.length + (file.parts.length + 1) * BYTES_OF_PART });
      return file;
    } catch (error) {
      files.delete(key);
      throw error;
    }
  }

  /** Whether the tenant wants the file with this name. */
  const isWanted = async (assetId: number, name: string) => (await wanted(assetId)).some((row) => row.name === name);

  return {
    isWanted,
    /** The size of the file that `serveAny` delivers: the `Content-Length` of its response. */
    async sizeOf(asset: AssetRow, name: string, stored?: StaticSize): Promise<StaticSize> {
      const version = await versionOf(asset, name);
      if (asset.encoding !== null || asset.mediaPrefix === null) return { bytes: null, version };
      if (stored?.version === version) return stored;
      const known = sizes.get(version);
      if (known) return { ...known, version };
      // A size that comes later is remembered for the next request.
      const computed = computeSize(asset, name, version).catch(() => null);
      return { bytes: await atLatest(computed, MAX_WAIT_MS), version };
    },
    /** Throws 404 for a file that is not wanted, or that the media cannot be joined to. */
    async serve(delivery: StaticDelivery): Promise<Response> {
      if (!(await isWanted(delivery.asset.id, delivery.name))) notFound("file");
      return this.serveAny(delivery);
    },
    /** The same for a file that no static rendition has. */
    async serveAny({ objects, asset, name, ...delivery }: StaticDelivery): Promise<Response> {
      if (asset.encoding !== null) notFound("file");
      const version = await versionOf(asset, name);
      const file = await fileOf(objects, asset, name, version);
      const info: ObjectInfo = {
        key: name,
        bytes: file.bytes,
        etag: `"${sha256(`${version} ${file.bytes}`).slice(0, 32)}"`,
        modifiedAt: new Date(asset.readyAt ?? asset.updatedAt),
      };
      const virtual = {
        head: async () => info,
        get: async (_: string, range: ByteRange = { start: 0, end: file.bytes - 1 }) => ({
          info,
          body: Readable.from(bytesOf(objects, file, range), { objectMode: false }),
        }),
      };
      const contentType = isAudioOnly(name) ? "audio/mp4" : "video/mp4";
      return serveObject({ ...delivery, objects: virtual, key: name, contentType });
    },
  };
});

/** What the promise resolves with, or null after so many milliseconds. */
async function atLatest<T>(promise: Promise<T | null>, ms: number): Promise<T | null> {
  const timer = Promise.withResolvers<null>();
  const timeout = setTimeout(() => timer.resolve(null), ms);
  try {
    return await Promise.race([promise, timer.promise]);
  } finally {
    clearTimeout(timeout);
  }
}

/** The bytes of a range, one object after the other. Throws Error when an object is missing by now. */
async function* bytesOf(
  objects: ObjectStore,
  { init, parts, audioTrack }: StaticFile,
  { start, end }: ByteRange,
): AsyncGenerator<Buffer> {
  if (start < init.length) yield init.subarray(start, end + 1);
  let at = init.length;
  for (const { key, bytes, isAudio } of parts) {
    const from = Math.max(0, start - at);
    const to = Math.min(bytes, end + 1 - at);
    at += bytes;
    if (from >= bytes) continue;
    if (to <= 0) return;
    if (isAudio && audioTrack !== null) {
      const segment = await readSmallObject(objects, key, { maxBytes: MAX_AUDIO_SEGMENT_BYTES });
      if (segment?.length !== bytes) throw new Error(`${key} has changed.`);
      const own = Buffer.from(segment);
      renumberSegment(own, audioTrack);
      yield own.subarray(from, to);
    } else {
      const found = await objects.get(key, { start: from, end: to - 1 });
      if (!found) throw new Error(`${key} is missing.`);
      yield* found.body as AsyncIterable<Buffer>;
    }
  }
}
