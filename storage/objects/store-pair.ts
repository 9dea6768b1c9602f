import type { Readable } from "node:stream";
import { createKeyedLock } from "../../src/lib/keyed-lock.ts";
import type { ObjectStore, PutOptions } from "./store.ts";

/** Two stores between which objects are carried, and who is at which key. */
export type StorePair = {
  source: ObjectStore;
  target: ObjectStore;
  /** Ends the copy of `key` that runs, and does `work` before another begins. */
  instead<T>(key: string, work: () => Promise<T>): Promise<T>;
  /** Carries the object over; false when it is gone. Throws what the stores do; the target's object is whole or as it was. */
  carry(key: string, options: Pick<PutOptions, "contentType" | "signal">): Promise<boolean>;
};

/** A deletion or a newer object of the same key came first. */
class Superseded extends Error {}

export function createStorePair(source: ObjectStore, target: ObjectStore): StorePair {
  const inTurn = createKeyedLock<string>();
  const carrying = new Map<string, AbortController>();
  return {
    source,
    target,
    instead(key, work) {
      carrying.get(key)?.abort(new Superseded());
      return inTurn(key, work);
    },
    carry: (key, { contentType, signal }) =>
      inTurn(key, async () => {
        const abort = new AbortController();
        carrying.set(key, abort);
        let body: Readable | null = null;
        try {
          const found = await source.get(key);
          if (!found) return false;
          body = found.body;
          const { bytes } = found.info;
          const put = await target.put(key, body, {
            maxBytes: bytes,
            signal: signal ? AbortSignal.any([signal, abort.signal]) : abort.signal,
            ...(contentType && { contentType }),
            confirm: async () => abort.signal.throwIfAborted(),
          });
          if (put.bytes !== bytes) throw new Error(`Of ${key} ${put.bytes} of ${bytes} bytes arrived.`);
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

/** Before the switch: the source alone, but what is deleted must not live on in the target. */
export const mirroringDeletes = (pair: StorePair): ObjectStore => ({
  ...pair.source,
  delete: (key) =>
    pair.instead(key, async () => {
      await pair.source.delete(key);
      await pair.target.delete(key);
    }),
});

const AWAY_MS = 60_000;

/** When all is over: the active store alone; old copies go with the object as far as they can be reached. */
export function forgettingCopies(active: ObjectStore, old: ObjectStore): ObjectStore {
  let awayUntil = 0;
  return {
    ...active,
    async delete(key) {
      await active.delete(key);
      // It may be switched off for good by now, and must not slow down every deletion.
      if (performance.now() < awayUntil) return;
      await old.delete(key).catch(() => {
        awayUntil = performance.now() + AWAY_MS;
      });
    },
  };
}
