import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ByteRange, rangesOf } from "#lib/isobmff";
import { captionTracksOf, readCaptionTracks } from "#media/captions/caption-tracks.ts";
import { looksCaptioned } from "#media/captions/look-for-captions.ts";
import { readClosedCaptions } from "#media/captions/read-captions.ts";
import { readTextTracks, textTracksLeftOut } from "#media/captions/read-text-tracks.ts";
import type { SourceCaptions } from "#media/captions/service-texts.ts";
import { type SourceIndex, videoTrackOf } from "#media/parallel/source-index.ts";
import type { EncodePlan } from "#media/plan.ts";
import { writeResult } from "#media/results.ts";
import type { Completion, WorkerContract } from "#protocol/worker-client.ts";
import type { Captions } from "./captions.ts";
import type { JobContext } from "./context.ts";

/** Texts in a source, as files of a job: closed captions in its video, and text tracks. */
export type SourceTextFiles = Pick<Captions, "dir" | "files"> & { reported: Pick<Completion, "closed_captions"> };

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
  /** The file that was uploaded, where `input` is a copy of its video and audio. */
  original?: string;
  /** A directory for this job. */
  work: string;
  signal: AbortSignal;
  onMove: () => void;
};

type Context = Pick<JobContext, "binaries" | "scratch" | "memoryBytes" | "log">;
type Reported = NonNullable<Completion["closed_captions"]>;
/** A WebVTT text, by the name that the completion has for it. */
type Text = { name: string; vtt: string; described?: Omit<Reported["tracks"][string], "path"> };
type Found = { texts: Text[] } & Pick<Reported, "failed" | "warnings">;

/**
 * Reads the texts in a source that the contract asks for, next to the encode. An error of them becomes a warning of the asset.
 * Throws the reason of the signal only.
 */
export async function writeSourceTexts(
  job: WorkerContract,
  context: Context,
  options: ReadOptions,
): Promise<SourceTextFiles> {
  const dir = join(options.work, "closed-captions-out");
  const files: string[] = [];
  const tracks: Reported["tracks"] = {};
  const { outputs } = job;
  const captions =
    outputs.read_closed_captions && options.plan.video ? await closedCaptions(job, context, options) : null;
  const textTracks = outputs.read_text_tracks ? await textTracksOf(job, context, options) : null;
  for (const { name, vtt, described } of [...(captions?.texts ?? []), ...(textTracks?.texts ?? [])]) {
    const file = `${FOLDER}/${name}.vtt`;
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeResult(join(dir, file), vtt);
    files.push(file);
    tracks[name] = { ...described, path: outputs.prefix + file };
  }
  const warnings = textTracks?.warnings ?? [];
  const isReported = files.length > 0 || captions?.failed || warnings.length > 0;
  const closed_captions = {
    tracks,
    ...(captions?.failed && { failed: true }),
    ...(warnings.length > 0 && { warnings }),
  };
  return { dir, files, reported: isReported ? { closed_captions } : {} };
}

async function closedCaptions(job: WorkerContract, context: Context, options: ReadOptions): Promise<Found> {
  try {
    const found = await captionsOf(context, options);
    return { texts: found.map(({ service, vtt }) => ({ name: service, vtt })) };
  } catch (error) {
    options.signal.throwIfAborted();
    context.log.warn(
      { job_id: job.job.id, error: String(error) },
      "The closed captions in the video could not be read.",
    );
    return { texts: [], failed: true };
  }
}

/** Captions in the video, or else in tracks of their own, which editing programs write. */
async function captionsOf(
  { binaries, scratch, memoryBytes }: Context,
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

const UNREADABLE = {
  code: "track_skipped" as const,
  message: "The text tracks of the source could not be read and were left out.",
};

async function textTracksOf(
  job: WorkerContract,
  { log }: Pick<Context, "log">,
  { input, original = input, plan: { durationSeconds }, startSeconds, source, signal, onMove }: ReadOptions,
): Promise<Found> {
  const index = source?.index ?? null;
  const need = source && ((ranges: readonly ByteRange[]) => source.need(ranges, { isQuiet: true }));
  try {
    if (original !== input) return { texts: [], warnings: await textTracksLeftOut(original, "has times that jump") };
    const reading = { startSeconds, durationSeconds, index, signal, onMove, ...(need && { need }) };
    const { tracks, warnings } = await readTextTracks(input, reading);
    const texts = tracks.map(({ number, vtt, language, title: label, kind, isDefault, skippedCues }) => ({
      name: `track${number}`,
      vtt,
      described: { language, label, kind, is_default: isDefault, skipped_cues: skippedCues },
    }));
    return { texts, warnings };
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ job_id: job.job.id, error: String(error) }, "The text tracks of the source could not be read.");
    return { texts: [], warnings: [UNREADABLE] };
  }
}
