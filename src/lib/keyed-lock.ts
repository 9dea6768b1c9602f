import { type AcquireLock, withLock } from "./lock-manager.ts";

/**
 * What runs under one key runs one after the other, in the order of asking; nothing is kept of keys that rest. With
 * `across`, among all processes that ask for turns in the same `room`.
 */
export function createKeyedLock<Key extends string | number>(across?: {
  take: AcquireLock | undefined;
  namespace: string;
}): <T>(key: Key, work: () => Promise<T>) => Promise<T> {
  const last = new Map<Key, Promise<unknown>>();
  return async (key, work) => {
    const mine = () => withLock(across?.take, `${across?.namespace} ${key}`, { work });
    const run = (last.get(key) ?? Promise.resolve()).then(mine, mine);
    last.set(key, run);
    try {
      return await run;
    } finally {
      if (last.get(key) === run) last.delete(key);
    }
  };
}
