import { join } from "node:path";
import { PER_TITLE } from "#lib/codecs";
import type { EncodingSpec } from "../encoding-spec.ts";
import { MediaError } from "../error.ts";
import type { Binaries } from "../ffmpeg.ts";
import { titleLadder } from "../ladder.ts";
import type { EncodePlan, Passthrough } from "../plan.ts";
import { type Candidate, chooseRungs, type Point } from "./choose.ts";
import { type Sample, samplesOf } from "./samples.ts";
import { qualityOf } from "./score.ts";
import { type Trial, type TrialOptions, tryRange } from "./trial.ts";

type Title = NonNullable<EncodingSpec["video"]["title"]>;

type AnalyzeOptions = Omit<TrialOptions, "plan" | "ffmpeg"> & {
  binaries: Binaries;
  /** The plan of the source, with the ladder. */
  plan: EncodePlan;
  /** Set when the first rendition is copied. */
  passthrough: Passthrough | null;
  /** Makes a part of the source available; returns where it is read from, as for a chunk. */
  locate?: (sample: Sample) => Promise<{ seekSeconds?: number | null }>;
  /** 0 to 1. */
  onProgress?: (fraction: number) => void;
};

/** The trials of each rung, relative to its own CRF: the curve of rate and quality is known from two points. */
const CRF_STEPS = [0, 8] as const;
/** A sample begins behind the keyframe that a seek finds. */
const SEEK_BACK_SECONDS = 0.5;

/**
 * The specification with the rungs of this source, where it requires that they are chosen; it is returned unchanged when they
 * have been, and when there is nothing to choose: without video, and when nothing of it has a time. Throws as
 * `analyzeTitle`.
 */
export async function withTitle({ plan, binaries, ...options }: AnalyzeOptions): Promise<EncodingSpec> {
  const { spec } = options;
  const { video, durationSeconds } = plan;
  if (spec.video.rate_control !== PER_TITLE || !video || !durationSeconds) return spec;
  if (titleLadder(video.track.width, video.track.height, spec)) return spec;
  const title = await analyzeTitle({ ...options, plan: { ...plan, video }, durationSeconds, ffmpeg: binaries.ffmpeg });
  return title ? { ...spec, video: { ...spec.video, title } } : spec;
}

/**
 * Chooses the rungs of a source from trial encodes of samples. The result depends on the source and the specification only. Null
 * when the samples cannot be encoded: then the ladder is used as it is, and the encode reports the fault. Throws MediaError
 * `aborted` and the errors of `locate`.
 */
async function analyzeTitle({
  passthrough,
  locate,
  onProgress,
  durationSeconds,
  ...options
}: TrialOptions &
  Pick<AnalyzeOptions, "passthrough" | "locate" | "onProgress"> & { durationSeconds: number }): Promise<Title | null> {
  const { plan, spec } = options;
  const { track, rate, renditions } = plan.video;
  const trials: Trial[][][] = [];
  const samples = samplesOf(durationSeconds, rate, spec.gop_seconds);
  for (const [index, sample] of samples.entries()) {
    const range = { ...sample, seekBackSeconds: SEEK_BACK_SECONDS, ...(await locate?.(sample)) };
    const workDir = join(options.workDir, String(index));
    const trial = await tryRange(range, CRF_STEPS, { ...options, workDir }).catch(unlessAborted);
    if (trial) trials.push(trial);
    onProgress?.((index + 1) / samples.length);
  }
  if (trials.length === 0) {
    options.run.onLog?.("No sample could be encoded; the rungs are those of the ladder.");
    return null;
  }
  const candidates = renditions.map((rung, index): Candidate => {
    const halvings = Math.log2((renditions[0] ?? rung).height / rung.height);
    const [own, lower] = CRF_STEPS.map((step, at) =>
      mean(
        trials.flatMap((one) => one[at]?.[index] ?? []),
        { crf: rung.crf + step, halvings },
      ),
    ) as [Point, Point];
    const most = Math.max(...trials.map((one) => one[0]?.[index]?.bits ?? 0));
    return { rung, points: [own, lower], peak: most / own.bits };
  });
  const rungs = chooseRungs(candidates, {
    isTopCopied: passthrough?.isCopied === true && renditions[0]?.width === track.width,
  });
  return {
    source_width: track.width,
    source_height: track.height,
    rungs: rungs.map(({ maxBitrate, ...one }) => ({ ...one, max_bitrate: maxBitrate })),
  };
}

function unlessAborted(error: unknown): null {
  if (error instanceof MediaError && error.code !== "aborted") return null;
  throw error;
}

function mean(trials: readonly Trial[], { crf, halvings }: { crf: number; halvings: number }): Point {
  const average = (values: number[]) => values.reduce((sum, one) => sum + one, 0) / trials.length;
  return {
    crf,
    bits: Math.max(1, average(trials.map(({ bits }) => bits))),
    quality: average(trials.map((one) => qualityOf(one, halvings))),
  };
}
