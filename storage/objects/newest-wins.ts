import { PartsMismatch } from "./store.ts";

type Turn = { abort: AbortController; ended: Promise<unknown> };

/** One at a time for a key. The newer ends the older, which is mostly a connection that hangs. */
export function newestWins() {
  const turns = new Map<string, Turn>();
  return async <T>(key: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const earlier = turns.get(key);
    earlier?.abort.abort(new PartsMismatch("The bytes are being sent again."));
    const abort = new AbortController();
    const run = async () => {
      await earlier?.ended.catch(() => {});
      return work(abort.signal);
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
