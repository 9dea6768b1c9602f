/** Runs both concurrently. The first failure aborts the other; when its error is thrown, neither runs any more. */
export async function runConcurrently<A, B>(
  signal: AbortSignal,
  one: (signal: AbortSignal) => Promise<A>,
  other: (signal: AbortSignal) => Promise<B>,
): Promise<[A, B]> {
  const failed = new AbortController();
  const both = AbortSignal.any([signal, failed.signal]);
  let first: { error: unknown } | undefined;
  const fail = (error: unknown): never => {
    first ??= { error };
    failed.abort();
    throw error;
  };
  const [a, b] = await Promise.allSettled([one(both).catch(fail), other(both).catch(fail)]);
  if (a.status === "fulfilled" && b.status === "fulfilled") return [a.value, b.value];
  throw first?.error;
}
