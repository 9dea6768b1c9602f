import { LRUCache } from "lru-cache";
import type { ObjectInfo, ObjectStore } from "../../storage/objects/store.ts";
import { notFound } from "../lib/errors.ts";

type Held = { info: ObjectInfo; bytes: Buffer };
const CACHEABLE_BYTES = 16 * 2 ** 20;

/** Hot objects, whole: a segment from memory is served twice as fast as through a stream. */
export type SegmentCache = {
  get(key: string): Held | undefined;
  /** The object's bytes, read once however many ask at once; undefined where a stream would take less memory. */
  load(objects: ObjectStore, { key, bytes }: ObjectInfo): Promise<Buffer | undefined>;
  /** The bytes are on their way to somebody, until the returned function is called. */
  lend(bytes: Buffer): () => void;
};

/**
 * Bounded by bytes; and as much again, at most, is what slow readers hold of objects that made room for others since.
 * All readers of an object share one buffer.
 */
export function segmentCache(maxBytes: number): SegmentCache {
  const held = new LRUCache<string, Held>({ maxSize: maxBytes });
  const loading = new Map<string, Promise<Buffer>>();
  const lent = new Map<Buffer, number>();
  /** What is lent, or about to be: that is read to be sent. */
  let lentBytes = 0;

  async function read(objects: ObjectStore, key: string): Promise<Buffer> {
    const { info, body } = (await objects.get(key)) ?? notFound("file");
    const bytes = Buffer.allocUnsafeSlow(info.bytes);
    let filled = 0;
    for await (const chunk of body) filled += (chunk as Buffer).copy(bytes, filled);
    if (filled !== info.bytes) throw new Error(`${key} has ${filled} bytes, not ${info.bytes}`);
    held.set(key, { info, bytes }, { size: bytes.length + 512 });
    return bytes;
  }

  return {
    get: (key) => held.get(key),
    async load(objects, { key, bytes }) {
      // It may have come between the caller's `get` and this.
      const running = held.get(key)?.bytes ?? loading.get(key);
      if (running) return running;
      if (bytes > CACHEABLE_BYTES || lentBytes + bytes > maxBytes) return undefined;
      lentBytes += bytes;
      const begun = read(objects, key).finally(() => {
        lentBytes -= bytes;
        loading.delete(key);
      });
      loading.set(key, begun);
      return begun;
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
