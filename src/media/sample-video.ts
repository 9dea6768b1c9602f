import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { INIT_NAME } from "./arguments.ts";
import type { Segment } from "./package.ts";

/** The init segment followed by media segments is a playable file, because each segment has its own time. */
export async function writeSampleVideo(folder: string, segments: readonly Segment[], path: string): Promise<void> {
  await using file = await open(path, "w");
  await file.appendFile(await readFile(join(folder, INIT_NAME)));
  for (const { name } of segments) await file.appendFile(await readFile(join(folder, name)));
}
