import type { Database, Db } from "./database.ts";

const registered = new WeakMap<object, Set<() => void>>();

/**
 * Calls `effect` once the transaction of the running work is on disk, and never when the work throws. The same function
 * is called once, however often it is registered. It must not throw, and it is only a hint: a process that is killed
 * after the commit does not call it. Throws Error outside of a `write`.
 */
export function afterCommit(tx: Db, effect: () => void): void {
  const effects = registered.get(tx);
  if (!effects) throw new Error("afterCommit() outside of its write()");
  effects.add(effect);
}

/** `write`, followed by the effects that its work registers. Works of one `tx` run one after another. */
export function withEffects(tx: Db, write: Database["write"]): Database["write"] {
  return async (work) => {
    let effects = new Set<() => void>();
    const value = await write(async () => {
      // A work may run twice.
      effects = new Set();
      registered.set(tx, effects);
      try {
        return await work(tx);
      } finally {
        registered.delete(tx);
      }
    });
    for (const effect of effects) effect();
    return value;
  };
}
