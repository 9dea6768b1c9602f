import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { SparseSource } from "./sparse-source.ts";

type Entry = { folder: string; users: Set<symbol>; source: Promise<SparseSource> };

/** A source of which a part was downloaded; disposing of it allows its deletion. */
export type CachedSource = AsyncDisposable & { source: SparseSource };

/**
 * Downloaded sources, each kept until another one is needed: a worker often runs several tasks of one job in a row, and
 * downloads each byte once.
 */
export class SourceCache {
  readonly #entries = new Map<string, Entry>();
  readonly #newFolder: () => Promise<string>;

  /** `newFolder` creates a directory that belongs to this worker. */
  constructor(newFolder: () => Promise<string>) {
    this.#newFolder = newFolder;
  }

  /** `create` creates the file at `path`, unless another task has. */
  async acquire(key: string, create: (path: string) => Promise<SparseSource>): Promise<CachedSource> {
    const entry = this.#entries.get(key) ?? this.#add(key, create);
    const user = Symbol(key);
    entry.users.add(user);
    const release = async () => {
      entry.users.delete(user);
      if (this.#entries.get(key) !== entry) await this.#remove(entry);
    };
    try {
      return { source: await entry.source, [Symbol.asyncDispose]: release };
    } catch (error) {
      // The next task tries again.
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
      await release();
      throw error;
    }
  }

  #add(key: string, create: (path: string) => Promise<SparseSource>): Entry {
    const users = new Set<symbol>();
    const open = async () => {
      await this.#evict(key);
      entry.folder = await this.#newFolder();
      return create(join(entry.folder, "source"));
    };
    const entry: Entry = { folder: "", users, source: Promise.resolve().then(open) };
    this.#entries.set(key, entry);
    return entry;
  }

  async #evict(but: string): Promise<void> {
    for (const [key, entry] of this.#entries) {
      if (key === but || entry.users.size > 0) continue;
      this.#entries.delete(key);
      await this.#remove(entry);
    }
  }

  async #remove(entry: Entry): Promise<void> {
    if (entry.users.size === 0 && entry.folder !== "") await rm(entry.folder, { recursive: true, force: true });
  }
}
