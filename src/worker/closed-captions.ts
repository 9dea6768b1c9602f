import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ByteRange, rangesOf } from "#lib/isobmff";
import { captionTracksOf, readCaptionTracks } from "#media/captions/caption-tracks.ts";
import { looksCaptioned } from "#media/captions/look-for-captions.ts";
import { readClosedCaptions } from "#media/captions/read-captions.ts";
import type { SourceCaptions } from "#media/captions/service-texts.ts";
import { type SourceIndex, videoTrackOf } from "#media/parallel/source-index.ts";
import type { EncodePlan } from "#media/plan.ts";
import { writeResult } from "#media/results.ts";
import type { Completion, WorkerContract } from "#protocol/worker-client.ts";
import type { Captions } from "./captions.ts";
import type { JobContext } from "./context.ts";

/** Closed captions in the video of a source, as files of a job. */
export type ClosedCaptionFiles = Pick<Captions, "dir" | "files"> & { reported: Pick<Completion, "closed_captions"> };

/** The directory of the results. */
const FOLDER = "closed-captions";

/** The source of a task (tasks/source.ts). */
type PartlyThere = {
  index: SourceIndex | null;
  isWhole: () => boolean;
  need: (ranges: readonly ByteRange[] | "all", options: { isQuiet: true }) => Promise<void>;
};

type ReadOptions = {
  /** All of the source is there; else `source` makes it available, if it has captions at all. */
  input: string;
  plan: EncodePlan;
  /** When the file begins, on its own timeline. */
  startSeconds: number;
  source?: PartlyThere;
  /** A directory for this job. */
  work: string;
  signal: AbortSignal;
  onMove: () => void;
};

/**
 * Reads the closed captions in the video, where the contract asks for them, next to the encode. An error of it becomes a warning
 * of the asset. Throws the reason of the signal only.
 */
export async function writeClosedCaptions(
  job: WorkerContract,
  context: Pick<JobContext, "binaries" | "scratch" | "memoryBytes" | "log">,
  options: ReadOptions,
): Promise<ClosedCaptionFiles> {
  const { plan, work, signal } = options;
  const dir = join(work, "closed-captions-out");
  const result: ClosedCaptionFiles = { reported: {}, dir, files: [] };
  if (!job.outputs.read_closed_captions || !plan.video) return result;
  try {
    const tracks: NonNullable<Completion["closed_captions"]>["tracks"] = {};
    for (const { service, vtt } of await captionsOf(context, options)) {
      const file = `${FOLDER}/${service}.vtt`;
      await mkdir(dirname(join(dir, file)), { recursive: true });
      await writeResult(join(dir, file), vtt);
      result.files.push(file);
      tracks[service] = { path: job.outputs.prefix + file };
    }
    return { ...result, reported: result.files.length > 0 ? { closed_captions: { tracks } } : {} };
  } catch (error) {
    signal.throwIfAborted();
    context.log.warn(
      { job_id: job.job.id, error: String(error) },
      "The closed captions in the video could not be read.",
    );
    return { dir, files: [], reported: { closed_captions: { tracks: {}, failed: true } } };
  }
}

/** Those in the video, or else in tracks of their own, which editing programs write. */
async function captionsOf(
  { binaries, scratch, memoryBytes }: Pick<JobContext, "binaries" | "scratch" | "memoryBytes">,
  { input, plan, startSeconds, source, work, signal, onMove }: ReadOptions,
): Promise<SourceCaptions[]> {
  if (source && !source.isWhole() && !(await makeWhole(input, plan, source))) return [];
  const cwd = join(work, "closed-captions");
  await mkdir(cwd, { recursive: true });
  const run = { cwd, reads: [input], signal, pidDir: scratch.pidDir, memoryBytes, onMove };
  const found = await readClosedCaptions({ input, plan, ffmpeg: binaries.ffmpeg, run });
  if (found.length > 0) return found;
  return readCaptionTracks(input, { startSeconds, durationSeconds: plan.durationSeconds, signal, onMove });
}

/** Downloads a source of which parts are there, if these have captions. */
async function makeWhole(input: string, { video }: EncodePlan, { index, need }: PartlyThere): Promise<boolean> {
  const quietly = (ranges: readonly ByteRange[] | "all") => need(ranges, { isQuiet: true });
  const track = index && video && videoTrackOf(index, video.track);
  if (index && track) {
    await quietly(index.tracks.filter(({ kind }) => kind === "other").flatMap((one) => rangesOf(one, 0, 1)));
    const isFound =
      (await captionTracksOf(input, index)).length > 0 ||
      (await looksCaptioned(input, { track, codec: video.track.codec, need: quietly }));
    if (!isFound) return false;
  }
  await quietly("all");
  return true;
}
