/** How many commits this process has made, or null where others write to the database too. */
export type Commits = () => number | null;

/**
 * What `load` read, until the next commit: exact and never old, since every change goes through this process's write
 * queue. Nothing is remembered where that is not so. At most `max` answers are kept.
 */
export function rememberUntilCommit<K, V>(
  commits: Commits,
  load: (key: K) => Promise<V>,
  max = 10_000,
): (key: K) => Promise<V> {
  const known = new Map<K, V>();
  let at: number | null = null;
  return async (key) => {
    const now = commits();
    if (now === null) return load(key);
    if (now !== at || known.size >= max) {
      known.clear();
      at = now;
    }
    const found = known.get(key);
    if (found !== undefined) return found;
    const value = await load(key);
    // A commit while it was being read: nobody knows on which side of it the answer stands.
    if (value !== undefined && commits() === now && at === now) known.set(key, value);
    return value;
  };
}
