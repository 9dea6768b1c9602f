import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rename, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { AcquireLock } from "../../src/lib/lock-manager.ts";
import { InvalidKey, TEMPORARY_FOLDER, temporaryName } from "./keys.ts";

const FOLDERS_REMEMBERED = 10_000;
const NEW_FILE = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
const NO_FOLDER = "An object stands where this key needs a folder: a local store can't hold both.";

export const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code ?? "";

/** The processes that write to the same store, and which of them this one is. */
export type StoreProcesses = {
  readonly slot: number;
  /** Nothing of the others runs yet. */
  readonly isFirst: boolean;
  readonly take: AcquireLock;
};

/** The folders of a local store: made on demand, durable, removed when empty. */
export class Folders {
  readonly root: string;
  /** Folders whose entry in their parent is known to be on the disk. */
  readonly #durable = new Set<string>();
  /** Syncs under way, and the one that comes after it for all who asked meanwhile. */
  readonly #syncs = new Map<string, { now: Promise<void>; next: Promise<void> | null }>();

  readonly #family: StoreProcesses | undefined;

  /** `root` must be a real path: see `isOwn`. */
  constructor(root: string, family?: StoreProcesses) {
    this.root = root;
    this.#family = family;
  }

  /**
   * Whether `folder` is reached without a symbolic link. The API can make none, but a restored archive or another
   * program may; following it would serve and overwrite files that are no objects. The root itself may be one.
   */
  async isOwn(folder: string): Promise<boolean> {
    try {
      return (await realpath(folder)) === folder;
    } catch (error) {
      if (["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error))) return false;
      throw error;
    }
  }

  /** A new temporary file, on the root's file system, so that it can be moved to its place in one step. */
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

  /** Makes `folder` when it is absent. Throws InvalidKey when something else stands there. */
  ensure(folder: string): Promise<void> {
    return whileVanishing(async () => {
      if (!(await this.isOwn(folder))) await this.#make(folder);
      else if (!(await lstat(folder)).isDirectory()) throw new InvalidKey(NO_FOLDER);
    });
  }

  /** Moves a temporary file to its place in one step. */
  place(temporary: string, path: string): Promise<void> {
    return whileVanishing(async () => {
      await this.ensure(dirname(path));
      await rename(temporary, path);
    });
  }

  /** What this process's temporary files begin with: so it knows its own, when it was started again beside others. */
  get #mark(): string {
    return this.#family ? `${this.#family.slot}-` : "";
  }

  /**
   * Removes what puts left behind when their process died; only while no put of it can be running. Of one that others
   * serve beside, only its own. Returns how many.
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

  /** One folder at a time, since a recursive mkdir would follow a symbolic link out of the root. */
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
   * Syncs `folder`, after a rename in it, and every entry on the way to it that is not known to be on the disk. To be
   * called while the folder holds a file, so that nobody removes it meanwhile.
   */
  async sync(folder: string): Promise<void> {
    await this.#syncTogether(folder);
    for (let at = folder; at !== this.root && !this.#durable.has(at); at = dirname(at)) {
      await this.#syncTogether(dirname(at));
      // Another process may remove it, and make it anew, without our knowing.
      if (this.#family) continue;
      if (this.#durable.size >= FOLDERS_REMEMBERED) this.#durable.clear();
      this.#durable.add(at);
    }
  }

  /**
   * One sync serves all who asked before it began: thousands of files come to one folder at a time. What asks while one
   * is under way may have come too late for it, and waits for the next.
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

  /** Removes `folder` and those above it as far as they are empty, never the root. */
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

/** A delete of a folder's last object may remove it at any moment; the next try makes it again. */
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
