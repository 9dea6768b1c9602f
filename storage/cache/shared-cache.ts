import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Redis } from "ioredis";
import type { Storage } from "unstorage";

/**
 * A cache of bytes that can be computed again, outside of this process. Names must contain everything that the bytes
 * depend on, such as an object's key and ETag: entries are never replaced or deleted.
 */
export type SharedCache = {
  /** Null when there is no such entry, and when the cache is damaged, slow or out of reach. Never rejects. */
  get(name: string): Promise<Buffer | null>;
  /** Stores in the background. An entry that is too large, or that cannot be stored, is left out. */
  set(name: string, bytes: Uint8Array): void;
  /** The client that rate limits share; null without Redis, and while its code is being loaded. */
  redis(): Redis | null;
  /** Waits for entries that are being stored. */
  close(): Promise<void>;
};

/** A larger one takes longer to transfer than to compute. */
const MAX_BYTES = 2 ** 20;
const CHECKSUM_BYTES = 4;

/** Names can be longer than the names of files. */
const itemOf = (name: string) => {
  const digest = createHash("sha256").update(name).digest("hex");
  return `${digest.slice(0, 2)}:${digest}`;
};

/** A file may have been truncated by a crash. */
function sealed(bytes: Uint8Array): Buffer {
  const whole = Buffer.allocUnsafe(CHECKSUM_BYTES + bytes.length);
  whole.writeUInt32BE(crc32(bytes));
  whole.set(bytes, CHECKSUM_BYTES);
  return whole;
}

/** Drivers return a string, or an error, for values that they cannot read. */
function unsealed(value: unknown): Buffer | null {
  if (!(value instanceof Uint8Array) || value.length < CHECKSUM_BYTES) return null;
  const whole = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const bytes = whole.subarray(CHECKSUM_BYTES);
  return whole.readUInt32BE() === crc32(bytes) ? bytes : null;
}

export type CacheStorage = {
  storage: Storage;
  redis?: Redis;
  /** Called before `bytes` are stored; an error prevents that. */
  reserve?(bytes: number): Promise<void>;
};

/** A cache whose driver is loaded on demand. `failed` is called with errors of opening and storing. */
export function sharedCache(opening: Promise<CacheStorage>, failed: (error: unknown) => void): SharedCache {
  let open: CacheStorage | null = null;
  const opened = opening.then((cache) => {
    open = cache;
    return cache;
  });
  opened.catch(failed);
  const storing = new Set<Promise<void>>();

  async function store(name: string, bytes: Uint8Array): Promise<void> {
    try {
      const { storage, reserve } = await opened;
      await reserve?.(bytes.length);
      await storage.setItemRaw(itemOf(name), sealed(bytes));
    } catch (error) {
      failed(error);
    }
  }

  return {
    async get(name) {
      try {
        return unsealed(await (await opened).storage.getItemRaw(itemOf(name)));
      } catch {
        return null;
      }
    },
    set(name, bytes) {
      if (bytes.length > MAX_BYTES) return;
      const work = store(name, bytes).finally(() => storing.delete(work));
      storing.add(work);
    },
    redis: () => open?.redis ?? null,
    async close() {
      await Promise.allSettled(storing);
      await opened.then(({ storage }) => storage.dispose()).catch(() => {});
    },
  };
}
