import * as v from "valibot";
import { TASK_KINDS } from "#model/enums.ts";
import { Title } from "./encoding-spec.ts";
import { describedAs } from "./fields.ts";
import { DurationSeconds, HeightField, NameField, RecordId, WidthField } from "./record-fields.ts";

/**
 * Tasks: the parts of one job that workers encode independently. A worker that announces them in its `capabilities`
 * leases tasks instead of whole jobs. The plan of an attempt is determined by a `plan` task and stored; the server
 * derives the other tasks from it.
 */

/**
 * - `plan`: read the source and decide what is produced from it, and whether it can be cut.
 * - `chunk`: encode all video renditions of a range of whole segments.
 * - `audio`: encode all audio tracks of the source, or of a range of whole segments. The first one creates its captions.
 * - `images`: with all segments in storage, write thumbnail, storyboard and manifests.
 * - `whole`: produce everything in one run, as a job without tasks.
 */
export type TaskKind = (typeof TASK_KINDS)[number];

/**
 * The version of this protocol, as workers announce it in `capabilities.tasks`: from `first` on they lease tasks, from
 * `codecs` on also the chunks of sources that have renditions in more codecs than H.264. Workers of version 2 would encode what
 * is copied of these.
 */
export const TASKS_VERSIONS = { first: 1, codecs: 3 } as const;
export const TASKS_VERSION = TASKS_VERSIONS.codecs;

const MAX_RENDITIONS = 100;
/** 24 hours in segments of one second. */
const MAX_SEGMENTS = 86_400;
/** Frames per second, of sources and of results. */
export const MAX_FRAME_RATE = 1000;
/** Longer than all that can be encoded or joined: 23 days. */
export const MAX_MEDIA_SECONDS = 2_000_000;
const MAX_AUDIO_STEP = 1000;
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
  name: describedAs(NameField, Name),
  init: v.pipe(
    v.object({
      timescale: v.pipe(v.number(), v.integer(), v.minValue(1), v.description("Units per second")),
      codec: v.pipe(v.string(), v.maxLength(100), v.description("Codec string, as in RFC 6381")),
      width: describedAs(WidthField, count),
      height: describedAs(HeightField, count),
      delay: v.pipe(
        v.number(),
        v.integer(),
        v.description("How much earlier its edit list presents everything than the segments' timestamps"),
      ),
      sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/), v.description("Of init.mp4")),
    }),
    v.description("Its init segment, which must be the same in all chunks"),
  ),
  first: v.pipe(count, v.description("Number of its first segment, from 0")),
  segments: v.pipe(
    v.array(SegmentRow),
    v.maxLength(MAX_SEGMENTS),
    v.description(
      "[bytes, start, duration, offset, size] of each: start and duration in the timescale, offset and size of its first frame (0 and 0: unknown)",
    ),
  ),
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
  /** Its video is copied, and its index does not state exactly where the segments begin: a fragmented file, for example. */
  "passthrough",
  /** Its keyframes are too far apart: each chunk would decode a large part of the source. */
  "long_gop",
  /** Its container cannot be read in parts over the network. */
  "unreadable_in_parts",
  /** Shorter than two chunks. */
  "short",
  /** From earlier versions: it was to be published before the job completed. */
  "early_playback",
  /** It is longer than 24 hours. */
  "too_long",
  /** From workers of earlier versions: it is also encoded with codecs that these do not encode in chunks. */
  "additional_codecs",
  /** A chunk did not have exactly the frames of its range, or is known not to: the clock begins below 0. */
  "inexact",
  "disabled",
] as const;
export type UncuttableReason = (typeof UNCUTTABLE_REASONS)[number];

const Early = v.object({
  segments: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(MAX_SEGMENTS),
    v.description("How many segments the video renditions will have"),
  ),
  renditions: v.pipe(
    v.array(
      v.object({
        name: describedAs(NameField, Name),
        width: describedAs(WidthField, count),
        height: describedAs(HeightField, count),
        codec: v.pipe(
          v.nullish(v.pipe(v.string(), v.maxLength(100))),
          v.description("Of a codec other than H.264: these are encoded after all others, unless they are requested"),
        ),
        is_copied: v.pipe(
          v.nullish(v.boolean()),
          v.description("Whether it is copied from the source. Absent: with `segment_frames` the first one is"),
        ),
      }),
    ),
    v.minLength(1),
    v.maxLength(MAX_RENDITIONS),
    v.description("The video renditions, those of H.264 first; those of a codec largest first"),
  ),
  audio_step: v.pipe(
    v.nullish(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_AUDIO_STEP))),
    v.description(
      "Audio may be encoded in ranges that begin at multiples of so many segments, with the packets of one run; null: only as a whole",
    ),
  ),
});

/** The result of a `plan` task. */
export const PlanResult = v.object({
  plan: v.pipe(
    v.record(v.string(), v.unknown()),
    v.description("What is produced, in the worker's own format; sent unchanged with the other tasks"),
  ),
  duration_seconds: describedAs(
    DurationSeconds,
    v.nullable(v.pipe(v.number(), v.minValue(0), v.maxValue(MAX_MEDIA_SECONDS))),
  ),
  frame_rate: v.pipe(
    v.nullable(
      v.object({
        num: v.pipe(positive, v.description("Numerator")),
        den: v.pipe(positive, v.description("Denominator")),
      }),
    ),
    v.description("The constant frame rate of all renditions; null without video"),
  ),
  segment_seconds: v.pipe(v.number(), v.minValue(1), v.maxValue(60), v.description("Length of segments")),
  segment_frames: v.pipe(
    v.nullish(v.pipe(v.array(count), v.minLength(1), v.maxLength(MAX_SEGMENTS))),
    v.description(
      "First frame of each segment, ascending from 0, where they do not follow from `segment_seconds`: of a source whose video is copied",
    ),
  ),
  has_audio: v.pipe(v.boolean(), v.description("Whether audio is encoded")),
  uncuttable: v.pipe(
    v.nullable(v.picklist(UNCUTTABLE_REASONS)),
    v.description("Why the source must be encoded in one run; null when it can be cut"),
  ),
  title: v.pipe(
    v.nullish(Title),
    v.description(
      'The renditions that were chosen for this source, with `rate_control: "per_title"`; the contracts of all later tasks and attempts have them in `encoding_spec.video.title`',
    ),
  ),
  early: v.pipe(
    v.nullish(Early),
    v.description("What can be listed before it is encoded, for early playback; null when that is not known"),
  ),
});
export type PlanResult = v.InferOutput<typeof PlanResult>;

/** A range of whole segments, and their frames on the constant frame grid of the renditions. */
export const Chunk = v.object({
  number: v.pipe(count, v.description("Counted from 0")),
  first_segment: v.pipe(count, v.description("Counted from 0")),
  segments: v.pipe(v.nullable(count), v.description("Null for the last chunk, which ends with the source")),
  first_frame: v.pipe(count, v.description("Number of its first frame, from 0")),
  end_frame: v.pipe(v.nullable(count), v.description("Exclusive; null for the last chunk")),
  renditions: v.pipe(
    v.nullish(v.array(Name), null),
    v.description("The video renditions to encode, of those of the plan; null: all"),
  ),
  is_urgent: v.pipe(
    v.optional(v.boolean(), false),
    v.description("Whether a viewer waits for it: it runs before, and at a higher priority than, other chunks"),
  ),
});
export type Chunk = v.InferOutput<typeof Chunk>;

/** The part of a contract that describes the task. */
export const Task = v.object({
  id: RecordId,
  kind: v.pipe(v.picklist(TASK_KINDS), v.description("What the worker does")),
  plan: v.pipe(
    v.nullable(v.record(v.string(), v.unknown())),
    v.description("As the `plan` task returned it; null for `plan` and `whole`"),
  ),
  chunk: v.pipe(
    v.nullable(Chunk),
    v.description(
      "What to encode, for a `chunk`, and for `audio` in parts, which has the range of its segments; null: all",
    ),
  ),
  publishes: v.pipe(
    v.optional(v.boolean(), false),
    v.description(
      "Of a `chunk`: the worker first calls `publish_url` with manifests that list all segments of all renditions",
    ),
  ),
  written: v.pipe(
    v.nullable(WrittenRenditions),
    v.description("For `images`: what the other tasks have written, in order of their segments"),
  ),
});
export type Task = v.InferOutput<typeof Task>;

/** The frame with which segment `number` (from 0) begins: the first one at or after its nominal time. */
export const firstFrameOf = (number: number, segmentSeconds: number, rate: { num: number; den: number }): number =>
  // A tolerance of a millionth of a frame, for segment lengths that are not whole seconds; without -0.
  Math.max(0, Math.ceil((number * segmentSeconds * rate.num) / rate.den - 1e-6));
