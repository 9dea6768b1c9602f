/** How many commits this process has made, or null where others write to the database too. */
export type Commits = {
  (): number | null;
  /** Where others write, too: another value after each commit of this process, and within a second after theirs. */
  recent?: () => number | string;
};

/** The same where others write to the database, too: what is remembered is then up to a second old. */
export function sharedCommits(own: Commits): Commits {
  const recent = () => (own() ?? 0) + Math.floor(performance.now() / 1000);
  return Object.assign(() => null, { recent });
}

/** The same where other processes write to the same file: `version` is another one after any commit, so nothing is old. */
export const clusterCommits = (own: () => number, version: () => string): Commits =>
  Object.assign(() => null, { recent: () => `${own()} ${version()}` });

/**
 * What `load` read, until the next commit: exact and never old, since every change goes through this process's write
 * queue or shows in the file. Where others write to a remote database, too, their changes are seen after a second. At most `max` answers are kept.
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
    const found = known.get(key);
    if (found !== undefined) return found;
    const value = await load(key);
    // A commit while it was being read: nobody knows on which side of it the answer stands.
    if (value !== undefined && version() === now && at === now) known.set(key, value);
    return value;
  };
}
