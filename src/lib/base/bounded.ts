/**
 * Runs `work` for all items, at most `atOnce` at a time, and returns the results in the order of the items. After the
 * first failure no more are started, the signal that `work` receives is aborted, and that error is thrown once those in
 * progress have ended: nothing runs any more then. `signal` ends it in the same way, with its reason.
 * @example
 * await mapBounded([1, 2, 3], { atOnce: 2 }, async (each) => each * 2) // => [2, 4, 6]
 */
export async function mapBounded<T, R>(
  items: Iterable<T>,
  { atOnce, signal }: { atOnce: number; signal?: AbortSignal | undefined },
  work: (item: T, signal: AbortSignal) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const failed = new AbortController();
  const both = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  const rest = items[Symbol.iterator]();
  let failure: { error: unknown } | null = null;
  let started = 0;
  const lane = async () => {
    try {
      for (let next = rest.next(); !next.done && !failure; next = rest.next()) {
        const index = started++;
        signal?.throwIfAborted();
        results[index] = await work(next.value, both);
      }
    } catch (error) {
      failure ??= { error };
      failed.abort(error);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  if (failure) throw (failure as { error: unknown }).error;
  return results;
}

export type Slots = <T>(work: () => Promise<T>) => Promise<T>;

/** Runs works as they arrive, at most `atOnce` at a time; the others wait in order of arrival. */
export function slots(atOnce: number): Slots {
  let free = atOnce;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}
