import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { notFound, setTimeout } from "#lib/base";
import { type ObjectInfo, type ObjectStore, StorageUnavailable } from "#storage/objects/store.ts";

type CachedObject = { info: ObjectInfo; bytes: Buffer };
const CACHEABLE_BYTES = 16 * 2 ** 20;
/** All viewers of an object wait for one load: when storage sends it too slowly, they get an error, and later ones another load. */
const LOAD_MS = 120_000;

/** Caches whole hot objects: a segment from memory is served twice as fast as through a stream. */
export type SegmentCache = {
  get(key: string): CachedObject | undefined;
  /** The object's bytes, read once for concurrent requests; undefined when a stream would use less memory. */
  load(objects: Pick<ObjectStore, "get">, { key, bytes }: ObjectInfo): Promise<Buffer | undefined>;
  /** Marks the bytes as being sent, until the returned function is called. */
  lend(bytes: Buffer): () => void;
};

const ofApp = forApp(({ config }) => ({
  cache: config.segment_cache_bytes > 0 ? segmentCache(config.segment_cache_bytes) : undefined,
}));

/** The cache of this process, of the size of its settings; undefined when that is 0. */
export const segmentCacheOf = (app: App): SegmentCache | undefined => ofApp(app).cache;

/**
 * Bounded by bytes. Evicted objects that slow clients still receive may use as much again. All readers of an object
 * share one buffer.
 */
export function segmentCache(maxBytes: number, loadMs = LOAD_MS): SegmentCache {
  const cache = new LRUCache<string, CachedObject>({ maxSize: maxBytes });
  const loading = new Map<string, Promise<Buffer>>();
  const lent = new Map<Buffer, number>();
  /** Bytes that are being sent, or read to be sent. */
  let lentBytes = 0;

  async function read(objects: Pick<ObjectStore, "get">, key: string): Promise<Buffer> {
    const { info, body } = (await objects.get(key)) ?? notFound("file");
    const slow = () => body.destroy(new StorageUnavailable(`${key} did not arrive within ${loadMs / 1000} s.`));
    const timer = setTimeout(slow, loadMs);
    const bytes = Buffer.allocUnsafeSlow(info.bytes);
    let filled = 0;
    try {
      for await (const chunk of body) filled += (chunk as Buffer).copy(bytes, filled);
    } finally {
      clearTimeout(timer);
    }
    if (filled !== info.bytes) throw new Error(`${key} has ${filled} bytes, not ${info.bytes}`);
    cache.set(key, { info, bytes }, { size: bytes.length + 512 });
    return bytes;
  }

  return {
    get: (key) => cache.get(key),
    async load(objects, { key, bytes }) {
      // It may have been loaded between the caller's `get` and this call.
      const running = cache.get(key)?.bytes ?? loading.get(key);
      if (running) return running;
      if (bytes > CACHEABLE_BYTES || lentBytes + bytes > maxBytes) return undefined;
      lentBytes += bytes;
      const started = read(objects, key).finally(() => {
        lentBytes -= bytes;
        loading.delete(key);
      });
      loading.set(key, started);
      return started;
    },
    lend(bytes) {
      const readers = lent.get(bytes) ?? 0;
      if (readers === 0) lentBytes += bytes.length;
      lent.set(bytes, readers + 1);
      return () => {
        const left = (lent.get(bytes) ?? 1) - 1;
        if (left > 0) return void lent.set(bytes, left);
        if (lent.delete(bytes)) lentBytes -= bytes.length;
      };
    },
  };
}
