import { rm } from "node:fs/promises";
import { join } from "node:path";

type OnBytes = (received: number) => void;
type Entry = { folder: string; users: Set<OnBytes>; file: Promise<string> };
type AcquireOptions = {
  /** Writes the source to `path`, unless it is there or another task is downloading it. */
  download: (path: string, onBytes: OnBytes) => Promise<void>;
  /** Bytes received so far, also of a download that another task has started. */
  onBytes: OnBytes;
};

/** A source that was downloaded; disposing of it allows its deletion. */
export type CachedSource = AsyncDisposable & { path: string };

/**
 * Downloaded sources, each kept until another one is needed: a worker often runs several tasks of one job in a row, and
 * downloads its source once.
 */
export class SourceCache {
  readonly #entries = new Map<string, Entry>();
  readonly #newFolder: () => Promise<string>;

  /** `newFolder` creates a directory that belongs to this worker. */
  constructor(newFolder: () => Promise<string>) {
    this.#newFolder = newFolder;
  }

  async acquire(key: string, { download, onBytes }: AcquireOptions): Promise<CachedSource> {
    const entry = this.#entries.get(key) ?? this.#add(key, download);
    // One task may use it twice.
    const user: OnBytes = (received) => onBytes(received);
    entry.users.add(user);
    const release = async () => {
      entry.users.delete(user);
      if (this.#entries.get(key) !== entry) await this.#remove(entry);
    };
    try {
      return { path: await entry.file, [Symbol.asyncDispose]: release };
    } catch (error) {
      // A download that failed or was aborted is repeated by the next task.
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
      await release();
      throw error;
    }
  }

  #add(key: string, download: AcquireOptions["download"]): Entry {
    const entry: Entry = { folder: "", users: new Set(), file: Promise.resolve("") };
    const open = async () => {
      await this.#evict(key);
      entry.folder = await this.#newFolder();
      const path = join(entry.folder, "source");
      await download(path, (received) => {
        for (const user of entry.users) user(received);
      });
      return path;
    };
    entry.file = open();
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
