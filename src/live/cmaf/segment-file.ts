import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeAll } from "#lib/base";
import { INDEX_OFFSET, SEGMENT_HEAD, segmentIndex, TRACK_ID } from "#lib/isobmff";
import { segmentFileName } from "#media/arguments.ts";

/** The ending of the name of an incomplete segment: readers of complete segments skip it. */
export const OPEN_SUFFIX = ".open";

/** Where a segment is, complete or not, to try in this order: it may be renamed between the first two attempts. */
export const segmentPaths = (path: string): string[] => [path, `${path}${OPEN_SUFFIX}`, path];

/**
 * Opens a segment for reading, whether it is complete or not: `path` is that of a complete one. Throws the error of the
 * file, ENOENT where there is none.
 */
export async function openSegment(path: string): Promise<FileHandle> {
  let missing: unknown;
  for (const attempt of segmentPaths(path)) {
    try {
      return await open(attempt);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      missing = error;
    }
  }
  throw missing;
}

/** A segment that grows by parts. The caller calls `admit` of its options before each write. */
export class SegmentFile {
  readonly #file: FileHandle;
  readonly #path: string;

  private constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
  }

  /** Creates it under the name of an open segment. Throws the error of the file. */
  static async create(folder: string, number: number): Promise<SegmentFile> {
    const path = join(folder, segmentFileName(number));
    const file = await open(`${path}${OPEN_SUFFIX}`, "w");
    const segment = new SegmentFile(file, path);
    try {
      await writeAll(file, [SEGMENT_HEAD], 0);
    } catch (error) {
      await segment.discard();
      throw error;
    }
    return segment;
  }

  /** Opens the segment that a process left, and keeps that many bytes of it. Throws the error of the file. */
  static async reopen(folder: string, number: number, bytes: number): Promise<SegmentFile> {
    const path = join(folder, segmentFileName(number));
    const file = await open(`${path}${OPEN_SUFFIX}`, "r+");
    await file.truncate(bytes);
    return new SegmentFile(file, path);
  }

  /** Throws the error of the file; then the file ends with a part that is not complete. */
  async append(offset: number, chunks: Buffer[]): Promise<void> {
    await writeAll(this.#file, chunks, offset);
  }

  /** Replaces the reserved box by the index, and gives the file its final name once it is on the disk. */
  async complete(index: Omit<Parameters<typeof segmentIndex>[0], "trackId">): Promise<void> {
    await writeAll(this.#file, [segmentIndex({ ...index, trackId: TRACK_ID })], INDEX_OFFSET);
    await this.#file.datasync();
    await this.#file.close();
    await rename(`${this.#path}${OPEN_SUFFIX}`, this.#path);
  }

  /** Deletes it. */
  async discard(): Promise<void> {
    await this.#file.close().catch(() => {});
    await rm(`${this.#path}${OPEN_SUFFIX}`, { force: true });
  }
}
