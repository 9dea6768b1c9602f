import { type AcquireLock, withLock } from "../../src/lib/lock-manager.ts";
import { PartsMismatch } from "./store.ts";

type Turn = { abort: AbortController; ended: Promise<unknown> };

/**
 * One at a time for a key, in this process and in those that `take` turns. The newer ends the older, which is mostly a
 * connection that hangs.
 */
export function newestWins(take: AcquireLock | undefined, room: string) {
  const turns = new Map<string, Turn>();
  return async <T>(key: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const earlier = turns.get(key);
    const again = () => new PartsMismatch("The bytes are being sent again.");
    earlier?.abort.abort(again());
    const abort = new AbortController();
    const run = async () => {
      await earlier?.ended.catch(() => {});
      return withLock(take, `${room} ${key}`, {
        options: { newest: true },
        work: (wanted) => {
          wanted?.addEventListener("abort", () => abort.abort(again()), { once: true });
          if (wanted?.aborted) abort.abort(again());
          return work(abort.signal);
        },
      });
    };
    const ended = run();
    const turn = { abort, ended };
    turns.set(key, turn);
    try {
      return await ended;
    } finally {
      if (turns.get(key) === turn) turns.delete(key);
    }
  };
}
