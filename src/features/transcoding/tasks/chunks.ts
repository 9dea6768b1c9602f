import { type Chunk, firstFrameOf, type PlanResult, type UncuttableReason } from "#protocol/task.ts";
import { audioParts } from "./audio-parts.ts";
import type { TaskDraft } from "./lifecycle.ts";

/**
 * A longer source has longer chunks: each is a few rows, and the last transaction of an attempt touches all of them.
 */
const MAX_CHUNKS = 1000;
const MAX_SECONDS = 24 * 3600;

/** Shares of the progress of a job, of 100. */
export const PLAN_WEIGHT = 2;
export const AUDIO_WEIGHT = 3;
export const IMAGES_WEIGHT = 3;
/** For early playback: segments whose low renditions are encoded first, three times as fast as all. */
export const LEAD_SEGMENTS = 3;
/** The head of early playback has the first segment; where a source ends, its last segments are encoded together. */
const LEAST_EARLY_SEGMENTS = 2;

/** Whole segments that the source has for certain: its last, shorter one is not counted. */
const wholeSegments = (duration: number, segmentSeconds: number) => Math.floor(duration / segmentSeconds + 1e-6);

/** Segments of a source of known length: where its video is copied they begin at its keyframes. */
export const segmentsOf = ({
  segment_frames,
  duration_seconds,
  segment_seconds,
}: Pick<PlanResult, "segment_frames" | "duration_seconds" | "segment_seconds">) =>
  segment_frames?.length ?? wholeSegments(duration_seconds ?? 0, segment_seconds);

/**
 * Why a source is encoded in one run; null: it is cut into chunks of about `chunkSeconds`, or, with `isEarly`, into those
 * that it is played from while it is encoded.
 */
export function whyUncut(
  plan: PlanResult,
  { chunkSeconds, ...given }: { chunkSeconds: number; isParallel: boolean; isEarly: boolean; wasInexact: boolean },
): UncuttableReason | null {
  const { duration_seconds: duration, frame_rate: rate, segment_seconds: segmentSeconds } = plan;
  if (plan.uncuttable !== null) return plan.uncuttable;
  if (!given.isParallel) return "disabled";
  if (given.wasInexact) return "inexact";
  if (rate === null) return "no_video";
  if (duration === null) return "unknown_duration";
  if (duration > MAX_SECONDS) return "too_long";
  // Some segments would be empty.
  if ((rate.num / rate.den) * segmentSeconds < 1) return "long_gop";
  const segments = segmentsOf(plan);
  if (given.isEarly) return segments < LEAST_EARLY_SEGMENTS ? "short" : null;
  return duration < 2 * chunkSeconds || segments < 2 ? "short" : null;
}

/**
 * Chunks of whole segments that cover the source: their numbers of segments differ by at most one, and the last one
 * ends with the source, however long that is. For a plan that `whyUncut` accepts.
 */
export function chunksOf(
  {
    duration_seconds,
    frame_rate,
    segment_seconds,
    segment_frames,
  }: Pick<PlanResult, "duration_seconds" | "frame_rate" | "segment_seconds" | "segment_frames">,
  chunkSeconds: number,
  { from: begin = 0, least = 2 } = {},
): Chunk[] {
  if (duration_seconds === null || frame_rate === null) throw new Error("A source without duration or video was cut");
  const rate = frame_rate;
  const total = segmentsOf({ segment_frames, duration_seconds, segment_seconds });
  const each = Math.max(1, Math.round(chunkSeconds / segment_seconds));
  const count = Math.min(MAX_CHUNKS, Math.max(least, Math.ceil((total - begin) / each - 0.5)));
  // The longer ones last: the end of the source may be earlier than its container states.
  const firstOf = (number: number) => begin + Math.floor((number * (total - begin)) / count);
  return Array.from({ length: count }, (_, number) => {
    const isLast = number === count - 1;
    return rangeOf(
      { frame_rate: rate, segment_seconds, segment_frames },
      { number, from: firstOf(number), to: isLast ? null : firstOf(number + 1) },
    );
  });
}

type Grid = Pick<PlanResult, "segment_seconds" | "segment_frames"> & {
  frame_rate: NonNullable<PlanResult["frame_rate"]>;
};
/** Segments `from` to before `to`; null: to the end of the source. */
export function rangeOf(
  { frame_rate, segment_seconds, segment_frames }: Grid,
  {
    number,
    from,
    to,
    renditions = null,
  }: { number: number; from: number; to: number | null; renditions?: string[] | null },
): Chunk {
  const frameOf = (segment: number) =>
    segment_frames ? (segment_frames[segment] as number) : firstFrameOf(segment, segment_seconds, frame_rate);
  return {
    number,
    first_segment: from,
    segments: to === null ? null : to - from,
    first_frame: frameOf(from),
    end_frame: to === null ? null : frameOf(to),
    renditions,
    is_urgent: false,
  };
}

/** The position of a job whose plan is complete. */
export const PLANNED = PLAN_WEIGHT;
export const WHOLE_TASK: TaskDraft = { kind: "whole", weight: 100 - PLAN_WEIGHT };

/** The tasks that encode a source in chunks, in the order in which they are queued. */
export function partsOf(plan: PlanResult, chunkSeconds: number): TaskDraft[] {
  const chunks = chunksOf(plan, chunkSeconds);
  const audio = plan.has_audio ? audioParts(plan, AUDIO_WEIGHT) : [];
  const left = 100 - PLAN_WEIGHT - IMAGES_WEIGHT - (plan.has_audio ? AUDIO_WEIGHT : 0);
  return [
    ...audio,
    ...chunks.map((chunk): TaskDraft => ({ kind: "chunk", chunk, weight: left / chunks.length })),
    { kind: "images", weight: IMAGES_WEIGHT },
  ];
}
