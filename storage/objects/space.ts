import { type FileHandle, statfs } from "node:fs/promises";
import { codeOf } from "./folders.ts";
import { StorageFull } from "./store.ts";

/** Bytes between two looks at the free space. */
const PROGRESS_BYTES = 64 * 1024 * 1024;

export type SpaceGuard = ReturnType<typeof spaceGuard>;

/** What the file system said, in our words where it is full. */
export const asStorageFull = (error: unknown) =>
  ["ENOSPC", "EDQUOT"].includes(codeOf(error)) ? new StorageFull({ cause: error }) : error;

/** Keeps `minFreeBytes` of the file system under `root` free. */
export function spaceGuard(root: string, minFreeBytes: number) {
  /** Throws StorageFull. */
  async function ensure(): Promise<void> {
    if (minFreeBytes === 0) return;
    const { bavail, bsize } = await statfs(root);
    if (bavail * bsize < minFreeBytes) throw new StorageFull();
  }

  return {
    ensure,
    /** Looks at the space while `write` fills `file`; `write` calls what it is given with the bytes written so far. */
    async whileWriting<T>(file: FileHandle, write: (onProgress: (bytes: number) => Promise<void>) => Promise<T>) {
      let next = PROGRESS_BYTES;
      let syncing: Promise<void> | null = null;
      const onProgress = async (bytes: number) => {
        if (bytes < next) return;
        next = bytes + PROGRESS_BYTES;
        // The disk begins while the bytes still come: left to the end, the sync of 2 GB takes longer than their way here.
        // What fails here fails in the last sync too, and is told there.
        syncing ??= file
          .datasync()
          .catch(() => {})
          .finally(() => {
            syncing = null;
          });
        await ensure();
      };
      try {
        return await write(onProgress);
      } finally {
        // The file is closed soon, and must not be under a sync then.
        await syncing;
      }
    },
  };
}
