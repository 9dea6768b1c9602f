import { type AcquireLock, withLock } from "./lock-manager.ts";

/**
 * Serializes work per key, in the order of the calls; idle keys use no memory. With `across`, among all processes that
 * use the same `namespace`.
 * @example
 * const withKey = createKeyedLock();
 * const order = [];
 * const step = (name) => async () => order.push(name);
 * await Promise.all([withKey("a", step("first")), withKey("a", step("second"))]);
 * order // => ["first", "second"]
 */
export function createKeyedLock<Key extends string | number>(across?: {
  take: AcquireLock | undefined;
  namespace: string;
}): <T>(key: Key, work: () => Promise<T>) => Promise<T> {
  const last = new Map<Key, Promise<unknown>>();
  return async (key, work) => {
    const locked = () => withLock(across?.take, `${across?.namespace} ${key}`, { work });
    const run = (last.get(key) ?? Promise.resolve()).then(locked, locked);
    last.set(key, run);
    try {
      return await run;
    } finally {
      if (last.get(key) === run) last.delete(key);
    }
  };
}
