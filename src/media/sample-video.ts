import { join } from "node:path";
import { INIT_NAME } from "./arguments.ts";
import type { Segment } from "./package.ts";
import { createResult, readResult } from "./results.ts";

/** Reads a file of a rendition: its init segment or a segment. */
export type SegmentReader = (rendition: string, file: string) => Promise<Buffer>;

export const readFromFolder =
  (outDir: string): SegmentReader =>
  (rendition, file) =>
    readResult(join(outDir, rendition, file));

/** The init segment followed by media segments is a playable file, because each segment has its own time. */
export async function writeSampleVideo(
  { name, segments, read }: { name: string; segments: readonly Segment[]; read: SegmentReader },
  path: string,
): Promise<void> {
  await using file = await createResult(path);
  await file.appendFile(await read(name, INIT_NAME));
  for (const segment of segments) await file.appendFile(await read(name, segment.name));
}
