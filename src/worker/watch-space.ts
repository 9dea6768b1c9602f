import { statfs } from "node:fs/promises";
import { setTimeout } from "#lib/base";

const LOOK_MS = 500;

/**
 * Calls `onFull`, once, when the disk of one of `folders` has less than `minFreeBytes` free; a missing directory is
 * ignored. ffmpeg writes by itself, so a check cannot precede each write. Returns a function that stops watching.
 */
export function watchSpace(folders: readonly string[], minFreeBytes: number, onFull: () => void): () => void {
  let isOver = minFreeBytes === 0;
  const look = async () => {
    const free = await Promise.all(folders.map(freeOf));
    if (isOver) return;
    if (free.every((bytes) => bytes >= minFreeBytes)) timer = setTimeout(look, LOOK_MS);
    else {
      isOver = true;
      onFull();
    }
  };
  let timer: NodeJS.Timeout | undefined;
  if (!isOver) void look();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

const freeOf = (folder: string): Promise<number> =>
  statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => Number.POSITIVE_INFINITY,
  );
