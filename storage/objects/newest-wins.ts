import { type AcquireLock, withLock } from "#lib/base";
import { PartsMismatch } from "./store.ts";

type ActiveWriter = { abort: AbortController; ended: Promise<unknown> };

/**
 * One writer at a time per key, in this process and in those that share the locks. A newer one aborts the older, which
 * is usually a hanging connection.
 */
export function newestWins(take: AcquireLock | undefined, namespace: string) {
  const writers = new Map<string, ActiveWriter>();
  return async <T>(key: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const earlier = writers.get(key);
    const again = () => new PartsMismatch("The bytes are being sent again.");
    earlier?.abort.abort(again());
    const abort = new AbortController();
    const run = async () => {
      await earlier?.ended.catch(() => {});
      return withLock(take, `${namespace} ${key}`, {
        options: { newest: true },
        work: (contested) => {
          contested?.addEventListener("abort", () => abort.abort(again()), { once: true });
          if (contested?.aborted) abort.abort(again());
          return work(abort.signal);
        },
      });
    };
    const ended = run();
    const writer = { abort, ended };
    writers.set(key, writer);
    try {
      return await ended;
    } finally {
      if (writers.get(key) === writer) writers.delete(key);
    }
  };
}
