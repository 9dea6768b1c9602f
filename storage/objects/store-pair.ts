import type { Readable } from "node:stream";
import { createKeyedLock } from "#lib/base";
import type { ObjectStore, PutOptions } from "./store.ts";

/** Two stores between which objects are copied, and the keys in progress. */
export type StorePair = {
  source: ObjectStore;
  target: ObjectStore;
  /** Aborts the copy of `key` in progress, and runs `work` before another begins. */
  instead<T>(key: string, work: () => Promise<T>): Promise<T>;
  /**
   * Copies the object; false when it was deleted. Throws the stores' errors; the target's object is either complete or
   * unchanged.
   */
  carry(key: string, options: Pick<PutOptions, "contentType" | "signal">): Promise<boolean>;
};

/** A deletion or a newer object of the same key came first. */
class Superseded extends Error {}

export function createStorePair(source: ObjectStore, target: ObjectStore): StorePair {
  const withLock = createKeyedLock<string>();
  const carrying = new Map<string, AbortController>();
  return {
    source,
    target,
    instead(key, work) {
      carrying.get(key)?.abort(new Superseded());
      return withLock(key, work);
    },
    carry: (key, { contentType, signal }) =>
      withLock(key, async () => {
        const abort = new AbortController();
        carrying.set(key, abort);
        let body: Readable | null = null;
        try {
          const object = await source.get(key);
          if (!object) return false;
          body = object.body;
          const { bytes } = object.info;
          const put = await target.put(key, body, {
            maxBytes: bytes,
            signal: signal ? AbortSignal.any([signal, abort.signal]) : abort.signal,
            ...(contentType && { contentType }),
            confirm: async () => abort.signal.throwIfAborted(),
          });
          if (put.bytes !== bytes) throw new Error(`Only ${put.bytes} of ${bytes} bytes of ${key} were copied.`);
          return true;
        } catch (error) {
          if (abort.signal.aborted) return false;
          throw error;
        } finally {
          body?.destroy();
          carrying.delete(key);
        }
      }),
  };
}

/** Before the switch: only the source is used, but a deleted object must not remain in the target. */
export const mirroringDeletes = (pair: StorePair): ObjectStore => ({
  ...pair.source,
  delete: (key) =>
    pair.instead(key, async () => {
      await pair.source.delete(key);
      await pair.target.delete(key);
    }),
});

const AWAY_MS = 60_000;

/**
 * After the end: only the active store is used; old copies are deleted with the object as far as their store is
 * available.
 */
export function forgettingCopies(active: ObjectStore, old: ObjectStore): ObjectStore {
  let awayUntil = 0;
  return {
    ...active,
    async delete(key) {
      await active.delete(key);
      // It may be permanently unavailable by now, and must not slow down every deletion.
      if (performance.now() < awayUntil) return;
      await old.delete(key).catch(() => {
        awayUntil = performance.now() + AWAY_MS;
      });
    },
  };
}
