import { statfs } from "node:fs/promises";

/** Every part of every stream asks: one look per second is enough for what all of them write in a second. */
const LOOK_MS = 1000;

/** Throws when less than `minFreeBytes` are free on the disk of `folder`. */
export function diskReserve(folder: string, minFreeBytes: number): () => Promise<void> {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let free = Promise.resolve(Number.POSITIVE_INFINITY);
  return async () => {
    if (minFreeBytes === 0) return;
    const now = performance.now();
    if (now - lookedAt >= LOOK_MS) {
      lookedAt = now;
      free = statfs(folder).then(({ bavail, bsize }) => bavail * bsize);
      // It is awaited below, and again by those who ask within the second.
      free.catch(() => {});
    }
    if ((await free) < minFreeBytes) throw new Error("The disk is full.");
  };
}
