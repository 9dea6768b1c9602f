import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Chunk } from "#protocol/task.ts";
import { copyArguments, INIT_NAME } from "../arguments.ts";
import { inspectCopied } from "../copied-video.ts";
import { type Binaries, run, type SourceRun, UNTIL_STALLED } from "../ffmpeg.ts";
import { listResults, makeFolder, moveResult } from "../results.ts";
import type { VideoRun } from "./video-runs.ts";

type Options = {
  input: string;
  /** Has a directory with the name of the rendition. */
  workDir: string;
  chunk: Pick<Chunk, "first_frame" | "end_frame">;
  binaries: Binaries;
  run: SourceRun;
};

/**
 * Copies the packets of a chunk, from the keyframe with which it begins to the first keyframe of the next chunk. Packets of an
 * additional codec are examined before they are in `workDir`. Throws MediaError.
 */
export async function copyRange(options: Options, { plan, settings: additional, hdr }: VideoRun): Promise<void> {
  const { input, workDir, chunk, binaries, run: common } = options;
  const [top] = plan.video.renditions;
  if (!top) return;
  const copyInto = async (outDir: string, isWithoutRepeats = false) => {
    await makeFolder(join(outDir, top.name));
    await run(binaries.ffmpeg, {
      ...common,
      writes: [...(common.writes ?? []), outDir],
      args: copyArguments({ input, outDir, plan, chunk, additional, isWithoutRepeats }),
      ...UNTIL_STALLED,
    });
  };
  if (!additional) return copyInto(workDir);
  const copyDir = `${workDir}-copy`;
  const folder = join(copyDir, top.name);
  const clear = () => rm(copyDir, { recursive: true, force: true });
  await clear();
  await copyInto(copyDir);
  const { isRepeating } = await inspectCopied({ folder, codec: additional.codec, hdr: hdr?.format ?? null });
  if (isRepeating) {
    await clear();
    await copyInto(copyDir, true);
  }
  // Segments are placed as soon as they are there, with the timescale of the init segment.
  const files = (await listResults(folder)).sort(
    (a, b) => Number(b === INIT_NAME) - Number(a === INIT_NAME) || (a < b ? -1 : 1),
  );
  for (const file of files) await moveResult(join(folder, file), join(workDir, top.name, file));
  await clear();
}
