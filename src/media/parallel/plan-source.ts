import { availableParallelism } from "node:os";
import { PER_TITLE } from "#lib/codecs";
import type { ByteRange } from "#lib/isobmff";
import type { PlanResult, UncuttableReason } from "#protocol/task.ts";
import { copyAudio } from "../audio-copy.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { MediaError } from "../error.ts";
import { type Binaries, run, type SourceRun, untrustedInput } from "../ffmpeg.ts";
import { SHORT_SECONDS } from "../package.ts";
import { findPassthrough } from "../passthrough.ts";
import { withTitle } from "../per-title/analyze.ts";
import {
  type EncodePlan,
  fillOf,
  heldFrames,
  planAdditional,
  planEncode,
  SHORT_FILL_SECONDS,
  withPassthrough,
} from "../plan.ts";
import type { Probe } from "../probe.ts";
import { keptHdrMetadata } from "../read-hdr-metadata.ts";
import { warningsOf } from "../tracks.ts";
import { audioStep } from "./audio-grid.ts";
import { copiedSegments } from "./passthrough-parts.ts";
import { predictedAudio, predictedVideo } from "./predict.ts";
import { longestKeyDistance, type SourceIndex, videoTrackOf, windowOf, windowRanges } from "./source-index.ts";
import { type StoredPlan, toStored } from "./stored-plan.ts";
import { copiedIn, videoRenditions } from "./video-runs.ts";

type PlanOptions = {
  input: string;
  probe: Probe;
  spec: EncodingSpec;
  binaries: Binaries;
  run: SourceRun;
  /** The index of a source that can be read in parts. */
  index?: SourceIndex | null | undefined;
  /** Only the index is there, and what the streams are determined from. */
  isSparse?: boolean | undefined;
  /**
   * For a specification that requires the choice of rungs: as for `withTitle`, and what makes parts of the source available.
   * Without it the ladder is used as it is.
   */
  trials?: (Trials & { need: (ranges: readonly ByteRange[] | "all") => Promise<void> }) | undefined;
};
type Trials = Pick<Parameters<typeof withTitle>[0], "encoder" | "watermark" | "workDir" | "onProgress">;

/** A chunk of the default length would decode at least as much again. */
const LONG_GOP_SECONDS = 20;
const GOP_SAMPLES = 100;

/**
 * Decides what is produced from a source, and whether it can be cut. Throws MediaError as `planEncode`, and
 * `aborted`.
 */
export async function planSource(given: PlanOptions): Promise<PlanResult> {
  const { input, probe, binaries } = given;
  const spec = await chosenSpec(given);
  const { title } = spec.video;
  const encoded = planEncode(probe, spec);
  const options = { ...given, spec, hdrMetadata: await keptHdrMetadata(planAdditional(encoded, spec), given) };
  const { index, isSparse } = options;
  const source = { input, probe, plan: encoded, spec, binaries, run: options.run, isSparse, index };
  const { uncuttable, seekBackSeconds, copied } = await cutsOf(options, encoded, source);
  const plan = copied?.plan ?? storedPlan(options, encoded, seekBackSeconds);
  return {
    plan: toStored(plan),
    duration_seconds: plan.durationSeconds,
    frame_rate: plan.video?.rate ?? null,
    segment_seconds: spec.segment_seconds,
    has_audio: plan.audio.length > 0,
    uncuttable,
    ...(copied && { segment_frames: copied.frames }),
    early: earlyOf(plan, options),
    ...(title && { title: { ...title, rungs: [...title.rungs] } }),
  };
}

/** The specification with the rungs of this source, where it requires their choice. */
async function chosenSpec({ trials, ...options }: PlanOptions): Promise<EncodingSpec> {
  const { spec, probe, index } = options;
  if (!trials || spec.video.rate_control !== PER_TITLE) return spec;
  const plan = planEncode(probe, spec);
  const { video } = plan;
  const track = index && video && videoTrackOf(index, probe.video);
  const locate = async (sample: { firstFrame: number; endFrame: number }) => {
    const located = { startSeconds: probe.startSeconds, video: video as NonNullable<typeof video> };
    const window = track && windowOf(track, { ...sample, plan: located, threads: availableParallelism() + 1 });
    await trials.need(track && window ? windowRanges(track, window) : "all");
    return window ? { seekSeconds: window.seekSeconds } : {};
  };
  const passthrough = await findPassthrough({ ...options, plan });
  return withTitle({ ...options, ...trials, plan, passthrough, locate });
}

type Planning = PlanOptions & Pick<StoredPlan, "hdrMetadata">;

const storedPlan = (
  { index, probe, hdrMetadata }: Planning,
  plan: EncodePlan,
  seekBackSeconds: number,
): StoredPlan => ({
  ...plan,
  seekBackSeconds,
  hdrMetadata,
  frames: framesOf(plan, probe),
  warnings: warningsOf(probe),
  originSeconds: probe.startSeconds,
  ...(index && videoTrackOf(index, probe.video) && { startSeconds: probe.startSeconds }),
});

/** Null when the container does not state the length of its video. */
function framesOf({ video }: EncodePlan, { startSeconds }: Probe): number | null {
  if (!video?.track.durationSeconds) return null;
  if (video.holdUntilSeconds > 0) return heldFrames(video);
  const end = Math.max(0, video.track.startSeconds - startSeconds) + video.track.durationSeconds;
  return Math.round((end * video.rate.num) / video.rate.den);
}

const hasPauses = ({ video, audio }: Probe): boolean =>
  [...(video ? [video] : []), ...audio].some(({ pauses }) => pauses.length > 0);

/**
 * Whether it is certain what each part of a source has. A run from the middle of one whose times jump does not know how much
 * time is before it; and of one whose end is missing, or damaged, only the encode finds out where it ends.
 */
const isReliable = (probe: Probe): boolean =>
  !probe.jumps && !probe.rewriting && !probe.isTruncated && !hasPauses(probe);

/** The most frames by which an encoder delays its output: with it, renditions of all codecs have a last segment, or none has one. */
const MAX_DELAY_FRAMES = 4;

/** What can be listed before it is encoded. */
function earlyOf(plan: StoredPlan, { spec, index, probe }: PlanOptions): PlanResult["early"] {
  const { video, durationSeconds } = plan;
  if (!probe.statesDuration || !isReliable(probe)) return null;
  const lengths = predictedVideo(plan, spec);
  if (!video || !durationSeconds || !lengths || lengths.some((frames) => frames < 1)) return null;
  const segments = lengths.length;
  // Chunks cover all whole segments of the container's duration: the video would be shorter than that.
  if (!video.passthrough && segments < Math.floor(durationSeconds / spec.segment_seconds + 1e-6)) return null;
  const all = videoRenditions(plan, spec);
  // A task for other codecs alone does not know whether the last segment of the primary one is joined to the one before it.
  const leastRate = MAX_DELAY_FRAMES / SHORT_SECONDS;
  if (all.some(({ codec }) => codec) && video.rate.num / video.rate.den < leastRate) return null;
  const copied = copiedIn(plan, spec);
  const renditions = all.map(({ name, width, height, codec }) => ({
    name,
    width,
    height,
    ...(codec && { codec }),
    ...(copied !== null && { is_copied: name === copied }),
  }));
  const audioSegments = plan.audio.map((one) => predictedAudio(one, plan, spec).length);
  // Parts of the audio are ranges of segments, of all tracks.
  const isAlike = audioSegments.every((count) => Math.abs(count - segments) <= 1 && count === audioSegments[0]);
  return { segments, renditions, audio_step: isAlike ? audioStep(plan, index, spec) : null };
}

type Source = Parameters<typeof findPassthrough>[0];

type Cuts = {
  uncuttable: UncuttableReason | null;
  seekBackSeconds: number;
  /** For a source whose video is copied: the plan, and the first frame of each segment. */
  copied?: { plan: StoredPlan; frames: number[] };
};

/** A seek finds the keyframe before this long before the first frame, whatever the container's rounding. */
const SEEK_BACK_SECONDS = 0.1;

async function cutsOf(options: Planning, plan: EncodePlan, source: Source): Promise<Cuts> {
  const cuts = (uncuttable: UncuttableReason | null, seekBackSeconds = SEEK_BACK_SECONDS) => ({
    uncuttable,
    seekBackSeconds,
  });
  const { video } = plan;
  if (!video) return cuts("no_video");
  if (!plan.durationSeconds || !options.probe.statesDuration) return cuts("unknown_duration");
  const fill = fillOf(video.track, video.holdUntilSeconds, options.probe);
  if (!fill.isShort) return cuts("held_frame");
  if (!isReliable(options.probe)) return cuts("inexact");
  // A seek may end between two fields. In a transport stream a frame of H.264 begins with its first one.
  const { fieldOrder, packetsPerFrame } = video.track;
  if (packetsPerFrame === 2 && (fieldOrder === "separate" || !plan.isTransport)) return cuts("inexact");
  // Seeks in such a file are off by that time. Delays of audio encoders are shorter.
  if (options.probe.startSeconds < -SEEK_BACK_SECONDS) return cuts("inexact");
  const passthrough = await findPassthrough(source);
  if (passthrough) {
    const audio = await copyAudio(source);
    const copying = storedPlan(
      options,
      { ...withPassthrough(plan, passthrough, options.spec), audio },
      SEEK_BACK_SECONDS,
    );
    const frames = copiedSegments(copying, options.index ?? null, options.spec);
    return frames ? { ...cuts(null), copied: { plan: copying, frames } } : cuts("passthrough");
  }
  const indexed = options.index && videoTrackOf(options.index, options.probe.video);
  const { isTransport } = plan;
  const lead = indexed
    ? longestKeyDistance(indexed)
    : isTransport
      ? await longestGop(options, video.track.index)
      : await longestLead(options, plan);
  if (lead > LONG_GOP_SECONDS) return cuts("long_gop");
  // Behind its last frame a seek by time may find nothing.
  const held = video.holdUntilSeconds > 0 ? SHORT_FILL_SECONDS : 0;
  // Without an index, a seek by time may end behind the keyframe that it should find: it begins a GOP earlier.
  return cuts(null, held + (isTransport ? lead + 2 * SEEK_BACK_SECONDS : SEEK_BACK_SECONDS));
}

/** Seconds between two keyframes of a track, at most; infinite when they cannot be read. Reads the whole source. */
async function longestGop(options: PlanOptions, index: number): Promise<number> {
  const lines = await packetLines(options, index, "packet=pts_time,flags");
  const keys = lines
    .filter((line) => line.includes(",K"))
    .map(Number.parseFloat)
    .filter(Number.isFinite);
  if (keys.length === 0) return Number.POSITIVE_INFINITY;
  return keys.reduce((most, key, at) => Math.max(most, key - (keys[at - 1] ?? key)), 0);
}

/**
 * The longest time, in seconds, between a keyframe and the position that is decoded from it, at positions spread over the
 * source; without decoding, and without reading all of it.
 */
async function longestLead(options: PlanOptions, { video, durationSeconds }: EncodePlan): Promise<number> {
  const step = (durationSeconds ?? 0) / (GOP_SAMPLES + 1);
  const times = Array.from({ length: GOP_SAMPLES }, (_, index) => (index + 1) * step);
  const intervals = times.map((seconds) => `${seconds.toFixed(3)}%+#1`).join(",");
  const lines = await packetLines(options, video?.track.index ?? 0, "packet=pts_time", "-read_intervals", intervals);
  if (lines.length === 0) return Number.POSITIVE_INFINITY;
  // Positions behind the last packet have none.
  return lines.reduce((most, line, index) => Math.max(most, (times[index] ?? 0) - Number.parseFloat(line)), 0);
}

/** What ffprobe prints of a track's packets; nothing when it fails, because the run over the source reports faults. */
async function packetLines(
  { input, binaries, run: common }: PlanOptions,
  index: number,
  entries: string,
  ...intervals: string[]
): Promise<string[]> {
  try {
    const selection = ["-select_streams", String(index), "-show_entries", entries, "-of", "csv=p=0"];
    const stdout = await run(binaries.ffprobe, {
      ...common,
      reads: [input],
      writes: [],
      args: ["-hide_banner", "-loglevel", "error", ...selection, ...intervals, ...untrustedInput(input)],
      timeLimitMs: 300_000,
    });
    return stdout.toString("latin1").split("\n").filter(Boolean);
  } catch (error) {
    if (error instanceof MediaError && error.code !== "aborted") return [];
    throw error;
  }
}
