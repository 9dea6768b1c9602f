/** Number of commits of this process, or null when others write to the database too. */
export type Commits = {
  (): number | null;
  /** When others write too: changes after each commit of this process, and within a second after one of theirs. */
  recent?: () => number | string;
};

/** The same when others write to the database too: a cached value is then up to a second old. */
export function sharedCommits(own: Commits): Commits {
  const recent = () => (own() ?? 0) + Math.floor(performance.now() / 1000);
  return Object.assign(() => null, { recent });
}

/**
 * The same when other processes write to the same file: `version` changes after any commit, so a cached value is never
 * old.
 */
export const clusterCommits = (own: () => number, version: () => string): Commits =>
  Object.assign(() => null, { recent: () => `${own()} ${version()}` });

/**
 * Caches what `load` read until the next commit: never stale, because every change goes through this process's write
 * queue or is visible in the file. When others write to a remote database too, their changes are visible after a
 * second. At most `max` values are kept.
 */
export function cacheUntilCommit<K, V>(
  commits: Commits,
  load: (key: K) => Promise<V>,
  max = 10_000,
): (key: K) => Promise<V> {
  const known = new Map<K, V>();
  let at: number | string | null = null;
  const version = () => commits() ?? commits.recent?.() ?? null;
  return async (key) => {
    const now = version();
    if (now === null) return load(key);
    if (now !== at || known.size >= max) {
      known.clear();
      at = now;
    }
    const cached = known.get(key);
    if (cached !== undefined) return cached;
    const value = await load(key);
    // A commit during the read: the result may be from before or after it.
    if (value !== undefined && version() === now && at === now) known.set(key, value);
    return value;
  };
}
