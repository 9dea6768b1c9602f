import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rename, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { AcquireLock } from "#lib/base";
import { InvalidKey, TEMPORARY_FOLDER, temporaryName } from "./keys.ts";

const FOLDERS_REMEMBERED = 10_000;
const NEW_FILE = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
const NO_FOLDER = "A prefix of this key is an object; local storage cannot store both.";

export const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? "";

/** The processes that write to the same store, and the index of this one. */
export type StoreProcesses = {
  readonly slot: number;
  /** None of the others is running yet. */
  readonly isFirst: boolean;
  readonly take: AcquireLock;
};

/** The directories of a local store: created on demand, synced, removed when empty. */
export class Folders {
  readonly root: string;
  /** Directories whose entry in their parent is known to be on disk. */
  readonly #durable = new Set<string>();
  /** Syncs in progress, and the next one, shared by all requests in the meantime. */
  readonly #syncs = new Map<string, { now: Promise<void>; next: Promise<void> | null }>();

  readonly #family: StoreProcesses | undefined;

  /** `root` must be a real path: see `isOwn`. */
  constructor(root: string, family?: StoreProcesses) {
    this.root = root;
    this.#family = family;
  }

  /**
   * Whether `folder` is reached without a symbolic link. The API cannot create links, but a restored archive or another
   * program may; following one would serve and overwrite files that are not objects. The root itself may be one.
   */
  async isOwn(folder: string): Promise<boolean> {
    try {
      return (await realpath(folder)) === folder;
    } catch (error) {
      if (["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) return false;
      throw error;
    }
  }

  /** A new temporary file, on the root's file system, so that it can be moved atomically. */
  async temporary(): Promise<{ file: FileHandle; path: string }> {
    const path = join(this.root, TEMPORARY_FOLDER, this.#mark + temporaryName());
    try {
      return { file: await open(path, NEW_FILE, 0o644), path };
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
      await mkdir(join(this.root, TEMPORARY_FOLDER), { recursive: true });
      return { file: await open(path, NEW_FILE, 0o644), path };
    }
  }

  /** Creates `folder` if it is missing. Throws InvalidKey when another file has its name. */
  ensure(folder: string): Promise<void> {
    return whileVanishing(async () => {
      if (!(await this.isOwn(folder))) await this.#make(folder);
      else if (!(await lstat(folder)).isDirectory()) throw new InvalidKey(NO_FOLDER);
    });
  }

  /** Moves a temporary file to its place atomically. */
  place(temporary: string, path: string): Promise<void> {
    return whileVanishing(async () => {
      await this.ensure(dirname(path));
      await rename(temporary, path);
    });
  }

  /** Prefix of this process's temporary files, by which it finds its own after a restart next to other processes. */
  get #mark(): string {
    return this.#family ? `${this.#family.slot}-` : "";
  }

  /**
   * Deletes files of puts whose process died; only while no put of it can be running. With other processes, only its
   * own. Returns their number.
   */
  async sweep(): Promise<number> {
    const folder = join(this.root, TEMPORARY_FOLDER);
    const left = await readdir(folder).catch((error) => {
      if (codeOf(error) === "ENOENT") return [];
      throw error;
    });
    const own = left.filter((name) => !this.#family || this.#family.isFirst || name.startsWith(this.#mark));
    for (const name of own) await rm(join(folder, name), { force: true });
    return own.length;
  }

  /** One directory at a time, because a recursive mkdir would follow a symbolic link out of the root. */
  async #make(folder: string): Promise<void> {
    if (folder === this.root) return;
    await this.#make(dirname(folder));
    try {
      await mkdir(folder);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      if ((await lstat(folder)).isDirectory()) return;
      throw new InvalidKey(NO_FOLDER);
    }
  }

  /**
   * Syncs `folder`, after a rename in it, and every entry on its path that is not known to be on disk. Called while the
   * directory has a file, so that it is not removed meanwhile.
   */
  async sync(folder: string): Promise<void> {
    await this.#syncTogether(folder);
    for (let at = folder; at !== this.root && !this.#durable.has(at); at = dirname(at)) {
      await this.#syncTogether(dirname(at));
      // Another process may remove and recreate it.
      if (this.#family) continue;
      if (this.#durable.size >= FOLDERS_REMEMBERED) this.#durable.clear();
      this.#durable.add(at);
    }
  }

  /**
   * One sync serves all requests from before it began: thousands of files are written to one directory at a time. A
   * request during a sync may be too late for it, and waits for the next.
   */
  #syncTogether(folder: string): Promise<void> {
    const under = this.#syncs.get(folder);
    if (!under) return this.#syncNow(folder);
    const begin = () => this.#syncNow(folder);
    under.next ??= under.now.then(begin, begin);
    return under.next;
  }

  #syncNow(folder: string): Promise<void> {
    const sync = { now: syncFolder(folder), next: null };
    this.#syncs.set(folder, sync);
    const end = () => {
      if (sync.next === null) this.#syncs.delete(folder);
    };
    sync.now.then(end, end);
    return sync.now;
  }

  /** Removes `folder` and its parents as far as they are empty, never the root. */
  async prune(folder: string): Promise<void> {
    for (let at = folder; at !== this.root; at = dirname(at)) {
      this.#durable.delete(at);
      try {
        await rmdir(at);
      } catch (error) {
        if (codeOf(error) === "ENOENT") continue;
        return;
      }
    }
  }
}

/** Deleting a directory's last object may remove it at any time; the next attempt creates it again. */
async function whileVanishing(work: () => Promise<void>): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) === "ENOTDIR") throw new InvalidKey(NO_FOLDER);
      if (codeOf(error) !== "ENOENT" || attempt === 100) throw error;
    }
  }
}

export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
