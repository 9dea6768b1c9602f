import { statSync } from "node:fs";
import { type FileHandle, statfs } from "node:fs/promises";
import { codeOf } from "./folders.ts";
import { StorageFull } from "./store.ts";

/** Bytes between two syncs of a file that is being written. */
const SYNC_BYTES = 64 * 1024 * 1024;

/** Converts a file system error for a full disk. */
export const asStorageFull = (error: unknown) =>
  ["ENOSPC", "EDQUOT"].includes(codeOf(error)) ? new StorageFull({ cause: error }) : error;

/** What `writeBody` needs to respect the disk reserve. */
export type Writing = {
  /** Called before each write with its size in bytes. Throws StorageFull; the result is called when it is written. */
  admit(bytes: number): Promise<() => void>;
  /** Called at intervals with the bytes written so far. */
  onProgress(bytes: number): Promise<void>;
};

export type SpaceGuard = {
  /** Throws StorageFull unless `bytes` (default 0) more fit on the disk above the reserve. */
  ensure(bytes?: number): Promise<void>;
  admit: Writing["admit"];
  /** Runs `write`, which fills `file` and respects the reserve with its argument. */
  whileWriting<T>(file: FileHandle, write: (writing: Writing) => Promise<T>): Promise<T>;
};

/**
 * Bytes of this process that are admitted and not yet written, by device: concurrent writers must not use the reserve
 * because each of them saw the same free space.
 */
const admitted = new Map<number, number>();

/**
 * Keeps `minFreeBytes` of the file system under `root` free. Every write of bytes that a client or another server sends
 * passes `admit` or `ensure` (test/disk-reserve.test.ts lists them). A body is admitted batch by batch while it is
 * written: one that announces much and sends nothing holds no space, and one that stalls holds at most one batch.
 */
export function spaceGuard(root: string, minFreeBytes: number): SpaceGuard {
  let device: number | undefined;
  const deviceOf = () => {
    device ??= statSync(root).dev;
    return device;
  };
  const add = (bytes: number) => admitted.set(deviceOf(), (admitted.get(deviceOf()) ?? 0) + bytes);

  async function ensure(bytes = 0): Promise<void> {
    if (minFreeBytes === 0) return;
    const { bavail, bsize } = await statfs(root);
    if (bavail * bsize - (admitted.get(deviceOf()) ?? 0) - bytes < minFreeBytes) throw new StorageFull();
  }

  async function admit(bytes: number): Promise<() => void> {
    if (minFreeBytes === 0) return () => {};
    // Counted before the disk is queried, so that two concurrent calls see each other.
    add(bytes);
    let isReleased = false;
    const release = () => {
      if (!isReleased) add(-bytes);
      isReleased = true;
    };
    try {
      await ensure();
      return release;
    } catch (error) {
      release();
      throw error;
    }
  }

  return {
    ensure,
    admit,
    async whileWriting(file, write) {
      let next = SYNC_BYTES;
      let syncing: Promise<void> | null = null;
      const onProgress = async (bytes: number) => {
        if (bytes < next) return;
        next = bytes + SYNC_BYTES;
        // Starts syncing while bytes still arrive: at the end, syncing 2 GB takes longer than receiving them. An error
        // here occurs in the last sync too, which reports it.
        syncing ??= file
          .datasync()
          .catch(() => {})
          .finally(() => {
            syncing = null;
          });
      };
      try {
        return await write({ admit, onProgress });
      } finally {
        // The file is about to be closed, and must not be closed during a sync.
        await syncing;
      }
    },
  };
}
