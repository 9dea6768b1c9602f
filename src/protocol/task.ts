import * as v from "valibot";
import { TASK_KINDS } from "../lib/enums.ts";

/**
 * Tasks: the parts of one job that workers encode independently. A worker that announces `capabilities: {tasks: 1}`
 * leases tasks instead of whole jobs. The plan of an attempt is determined by a `plan` task and stored; the server
 * derives the other tasks from it.
 */

/**
 * - `plan`: read the source and decide what is produced from it, and whether it can be cut.
 * - `chunk`: encode all video renditions of a range of whole segments.
 * - `audio`: encode all audio tracks of the whole source, and create its captions.
 * - `images`: with all segments in storage, write thumbnail, storyboard and manifests.
 * - `whole`: produce everything in one run, as a job without tasks.
 */
export type TaskKind = (typeof TASK_KINDS)[number];

/** The version of this protocol, as workers announce it in `capabilities.tasks`. */
export const TASKS_VERSION = 1;

const MAX_RENDITIONS = 100;
/** 24 hours in segments of one second. */
const MAX_SEGMENTS = 86_400;
const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(Number.MAX_SAFE_INTEGER));
const positive = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1_000_000_000));
const Name = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/, "must be a file name"));

/**
 * One segment: [bytes, start, duration, offset, size]. `start` and `duration` are in units of the rendition's timescale;
 * `offset` and `size` are the byte range of its first frame, 0 and 0 when it could not be located.
 */
const SegmentRow = v.strictTuple([count, count, count, count, count]);
export type SegmentRow = v.InferOutput<typeof SegmentRow>;

/** What was written of one rendition or audio track: `segments` are those from number `first` (counted from 0). */
export const WrittenRendition = v.object({
  name: Name,
  init: v.object({
    timescale: v.pipe(v.number(), v.integer(), v.minValue(1)),
    codec: v.pipe(v.string(), v.maxLength(100)),
    width: count,
    height: count,
    /** How much earlier its edit list presents everything than the segments' timestamps, in its timescale. */
    delay: v.pipe(v.number(), v.integer()),
    /** Of init.mp4, which must be the same in all chunks. */
    sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  }),
  first: count,
  segments: v.pipe(v.array(SegmentRow), v.maxLength(MAX_SEGMENTS)),
});
export type WrittenRendition = v.InferOutput<typeof WrittenRendition>;
export const WrittenRenditions = v.pipe(v.array(WrittenRendition), v.maxLength(MAX_RENDITIONS));

/** Why a source is encoded in one run; null: it can be cut. */
export const UNCUTTABLE_REASONS = [
  /** It has no video. */
  "no_video",
  /** Its container does not state the duration. */
  "unknown_duration",
  /** Audio outlasts the video, whose last frame is held. */
  "held_frame",
  /** Its video is copied, not encoded. */
  "passthrough",
  /** Its keyframes are too far apart: each chunk would decode a large part of the source. */
  "long_gop",
  /** Its container cannot be read in parts over the network. */
  "unreadable_in_parts",
  /** Shorter than two chunks. */
  "short",
  /** Renditions are to be published before the job completes. */
  "early_playback",
  /** It is longer than 24 hours. */
  "too_long",
  /** A chunk did not have exactly the frames of its range, or the decoder reported errors. */
  "inexact",
  "disabled",
] as const;
export type UncuttableReason = (typeof UNCUTTABLE_REASONS)[number];

/** The result of a `plan` task. */
export const PlanResult = v.object({
  /** What is produced, in the worker's own format; workers receive it unchanged with every other task. */
  plan: v.record(v.string(), v.unknown()),
  duration_seconds: v.nullable(v.pipe(v.number(), v.minValue(0))),
  /** The constant frame rate of all renditions, as a fraction; null without video. */
  frame_rate: v.nullable(v.object({ num: positive, den: positive })),
  segment_seconds: v.pipe(v.number(), v.minValue(1), v.maxValue(60)),
  has_audio: v.boolean(),
  /** Null when it can be cut. */
  uncuttable: v.nullable(v.picklist(UNCUTTABLE_REASONS)),
});
export type PlanResult = v.InferOutput<typeof PlanResult>;

/** A range of whole segments, and their frames on the constant frame grid of the renditions. */
export const Chunk = v.object({
  /** Counted from 0. */
  number: count,
  first_segment: count,
  /** Null for the last chunk, which ends with the source. */
  segments: v.nullable(count),
  first_frame: count,
  /** Exclusive; null for the last chunk. */
  end_frame: v.nullable(count),
});
export type Chunk = v.InferOutput<typeof Chunk>;

/** The part of a contract that describes the task. */
export const Task = v.object({
  id: v.number(),
  kind: v.picklist(TASK_KINDS),
  /** As the `plan` task returned it; null for `plan` and `whole`. */
  plan: v.nullable(v.record(v.string(), v.unknown())),
  /** Set for a `chunk`. */
  chunk: v.nullable(Chunk),
  /** For `images`: what the other tasks have written, in order of their segments. */
  written: v.nullable(WrittenRenditions),
});
export type Task = v.InferOutput<typeof Task>;

/** The frame with which segment `number` (from 0) begins: the first one at or after its nominal time. */
export const firstFrameOf = (number: number, segmentSeconds: number, rate: { num: number; den: number }): number =>
  // A tolerance of a millionth of a frame, for segment lengths that are not whole seconds; without -0.
  Math.max(0, Math.ceil((number * segmentSeconds * rate.num) / rate.den - 1e-6));
