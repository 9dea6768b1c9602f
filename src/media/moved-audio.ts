import { join } from "node:path";
import { readInit, shiftSegment } from "#lib/isobmff";
import { INIT_NAME } from "./arguments.ts";
import { segmentNames } from "./package.ts";
import { readResult, writeResult } from "./results.ts";

/**
 * Adds seconds to the times of all segments of a rendition of audio, before its manifests are written: it is heard with media
 * that do not begin at 0. ffmpeg's own option for that leaves the first fragment at 0.
 */
export async function moveAudio(outDir: string, name: string, seconds: number): Promise<void> {
  const folder = join(outDir, name);
  const names = await segmentNames(folder);
  if (names.length === 0) return;
  const { timescale } = readInit(await readResult(join(folder, INIT_NAME)));
  for (const file of names) {
    const data = await readResult(join(folder, file));
    shiftSegment(data, { time: Math.round(seconds * timescale), sequence: 0 });
    await writeResult(join(folder, file), data);
  }
}
