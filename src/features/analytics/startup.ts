/** The ratio of neighboring buckets: a percentile is at most 5 % from the exact one. */
const STEP = 1.1;

/** The bucket of a startup time in milliseconds. */
export const bucketOf = (ms: number) => (ms <= 1 ? 0 : Math.round(Math.log(ms) / Math.log(STEP)));

/** The startup time in the middle of a bucket, in whole milliseconds. */
const msOf = (bucket: number) => Math.round(STEP ** bucket);

/**
 * The least bucket that `share` (0 to 1) of the sessions do not exceed, as milliseconds; null without sessions. `sessions`
 * are counts by bucket.
 */
export function percentile(sessions: ReadonlyMap<number, number>, share: number): number | null {
  let left = share * sessions.values().reduce((sum, count) => sum + count, 0);
  if (left === 0) return null;
  for (const [bucket, count] of [...sessions].sort(([a], [b]) => a - b)) {
    left -= count;
    if (left <= 0) return msOf(bucket);
  }
  return null;
}
