import { approximateBytes } from "./approximate-bytes.ts";

/** Number of commits of this process, or null when others write to the database too. */
export type Commits = {
  (): number | null;
  /** When others write too: changes after each commit of this process, and within a second after one of theirs. */
  recent?: () => number | string;
  /** `recent` does not change immediately after a commit of others. */
  isLate?: boolean;
};

/** The same when others write to the database too: a cached value is then up to a second old. */
export function sharedCommits(own: Commits): Commits {
  const recent = () => (own() ?? 0) + Math.floor(performance.now() / 1000);
  return Object.assign(() => null, { recent, isLate: true });
}

/**
 * The same when other processes write to the same file: `version` changes after any commit, so a cached value is never
 * old.
 */
export const clusterCommits = (own: () => number, version: () => string): Commits =>
  Object.assign(() => null, { recent: () => `${own()} ${version()}` });

/** For all values of one cache: about 3,000 assets. */
const MAX_BYTES = 8 * 1024 * 1024;
/** A single value larger than this is not kept: it would replace too many others. */
const MAX_VALUE_BYTES = MAX_BYTES / 16;
const MAX_VALUES = 10_000;
/** More values at once are not kept: a client that reads all pages of a list would fill the cache. */
const MAX_AT_ONCE = 100;

/**
 * Values that are valid until the next commit: never stale, because every change goes through this process's write queue
 * or is visible in the file. When others write to a remote database too, their changes are visible after a second. A
 * full cache is emptied. Callers must not change the values.
 */
export class CommitCache<K, V> {
  readonly #commits: Commits;
  readonly #max: number;
  readonly #known = new Map<K, V>();
  #bytes = 0;
  #at: number | string | null = null;

  constructor(commits: Commits, max = MAX_VALUES) {
    this.#commits = commits;
    this.#max = max;
  }

  async get(key: K, load: (key: K) => Promise<V>): Promise<V> {
    const now = this.#begin();
    const cached = this.#known.get(key);
    if (now !== null && cached !== undefined) return cached;
    const value = await load(key);
    if (value !== undefined && this.#isCurrent(now)) this.#keep(key, value);
    return value;
  }

  /** The values of those `keys` that have one. `load` reads the unknown ones. */
  async getMany(keys: readonly K[], load: (keys: K[]) => Promise<ReadonlyMap<K, V>>): Promise<ReadonlyMap<K, V>> {
    const now = this.#begin();
    const found = new Map<K, V>();
    const unknown: K[] = [];
    for (const key of keys) {
      const cached = now === null ? undefined : this.#known.get(key);
      if (cached === undefined) unknown.push(key);
      else found.set(key, cached);
    }
    if (unknown.length === 0) return found;
    const loaded = await load(unknown);
    const isKept = loaded.size <= MAX_AT_ONCE && this.#isCurrent(now);
    for (const [key, value] of loaded) {
      found.set(key, value);
      if (isKept) this.#keep(key, value);
    }
    return found;
  }

  /** About the bytes of all values. */
  get bytes(): number {
    return this.#bytes;
  }

  #keep(key: K, value: V): void {
    if (this.#known.has(key)) return;
    const bytes = approximateBytes(key) + approximateBytes(value);
    if (bytes > MAX_VALUE_BYTES) return;
    if (this.#bytes + bytes > MAX_BYTES || this.#known.size >= this.#max) this.#clear();
    this.#known.set(key, value);
    this.#bytes += bytes;
  }

  #clear(): void {
    this.#known.clear();
    this.#bytes = 0;
  }

  /** The version that reads belong to from now on; null: unknown, so nothing can be kept. */
  #begin(): number | string | null {
    const now = this.#version();
    if (now !== null && now !== this.#at) {
      this.#clear();
      this.#at = now;
    }
    return now;
  }

  /** False after a commit during the read: the result may be from before or after it. */
  #isCurrent(now: number | string | null): boolean {
    return now !== null && this.#at === now && this.#version() === now;
  }

  #version(): number | string | null {
    return this.#commits() ?? this.#commits.recent?.() ?? null;
  }
}

/** Caches what `load` read until the next commit. */
export function cacheUntilCommit<K, V>(
  commits: Commits,
  load: (key: K) => Promise<V>,
  max?: number,
): (key: K) => Promise<V> {
  const cache = new CommitCache<K, V>(commits, max);
  return (key) => cache.get(key, load);
}
