import type { Logger } from "pino";
import type { Storage } from "unstorage";
import { createStorage } from "unstorage";
import { UserError } from "#lib/base";
import { makeFolder } from "#lib/executable";
import { spaceGuard } from "../objects/space.ts";
import { type SharedCache, sharedCache } from "./shared-cache.ts";

const MAX_BYTES = 256 * 2 ** 20;
/** Listing the directory takes longer than many writes, so the limit is exceeded by up to this before a sweep. */
const SWEEP_EVERY_BYTES = MAX_BYTES / 8;

export type FileCacheOptions = { log: Logger; minFreeBytes: number; maxBytes?: number };

/**
 * A cache in the files of a directory, which processes may share and which lasts beyond a restart. The oldest files are
 * deleted above `maxBytes` (default 256 MiB). Throws UserError when the directory cannot be created.
 */
export function fileCache(folder: string, { log, minFreeBytes, maxBytes = MAX_BYTES }: FileCacheOptions): SharedCache {
  try {
    makeFolder(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UserError(`The cache directory ${folder} cannot be created (${code}); set VODBOX_CACHE to another one.`);
  }
  const disk = spaceGuard(folder, minFreeBytes);
  /** The first write after a start sweeps: files of earlier runs count too. */
  let unswept = Math.min(SWEEP_EVERY_BYTES, maxBytes);
  let isFailing = false;
  const open = async () => {
    const { default: fsLite } = await import("unstorage/drivers/fs-lite");
    const storage = createStorage({ driver: fsLite({ base: folder }) });
    return {
      storage,
      async reserve(bytes: number) {
        await disk.ensure(bytes);
        isFailing = false;
        unswept += bytes;
        if (unswept <= Math.min(SWEEP_EVERY_BYTES, maxBytes)) return;
        unswept = 0;
        await sweep(storage, maxBytes - bytes);
      },
    };
  };
  return sharedCache(open(), (err) => {
    if (!isFailing) log.warn({ err, folder }, "the cache directory cannot be written; results are not cached there");
    isFailing = true;
  });
}

/** Deletes the oldest files until the others have at most `maxBytes`. */
async function sweep(storage: Storage, maxBytes: number): Promise<void> {
  const files: { item: string; bytes: number; writtenMs: number }[] = [];
  for (const item of await storage.getKeys()) {
    const { size, mtime } = await storage.getMeta(item, { nativeOnly: true });
    // Another process may have deleted it.
    if (typeof size === "number") files.push({ item, bytes: size, writtenMs: mtime?.getTime() ?? 0 });
  }
  let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { item, bytes } of files.sort((a, b) => a.writtenMs - b.writtenMs)) {
    if (total <= maxBytes) return;
    await storage.removeItem(item);
    total -= bytes;
  }
}
