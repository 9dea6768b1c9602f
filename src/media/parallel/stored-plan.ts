import * as v from "valibot";
import { BOUND_UNITS, HDR_FORMATS, type HdrMetadata, STEREO_MODES } from "#lib/codecs";
import type { Warning } from "#model/warnings.ts";
import { STEREO_CHANNELS } from "#protocol/audio-renditions.ts";
import { ReportedWarnings } from "#protocol/warnings.ts";
import { MediaError } from "../error.ts";
import type { EncodePlan } from "../plan.ts";

// The server stores a plan and returns it with each task: names become paths, and numbers arguments.
const name = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const positive = v.pipe(v.number(), v.integer(), v.minValue(1));
const seconds = v.pipe(v.number(), v.minValue(0));
const rate = v.object({ num: count, den: positive });
const text = v.pipe(v.string(), v.maxLength(100));

const degrees = v.pipe(v.number(), v.minValue(-360), v.maxValue(360));
const orientation = { yaw: degrees, pitch: degrees, roll: degrees };
const bound = v.pipe(count, v.maxValue(BOUND_UNITS - 1));
const bounds = v.object({ top: bound, bottom: bound, left: bound, right: bound });
const spherical = v.object({
  stereo: v.nullable(v.picklist(STEREO_MODES)),
  projection: v.nullable(
    v.variant("type", [
      v.object({ type: v.literal("equirectangular"), ...orientation, bounds }),
      v.object({
        type: v.literal("cubemap"),
        ...orientation,
        padding: v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
      }),
    ]),
  ),
});

// Absent in plans of earlier versions. A source with pauses is not cut, but its plan is stored.
const pauses = v.optional(
  v.pipe(v.array(v.object({ from: v.number(), to: v.nullable(v.number()) })), v.maxLength(100), v.readonly()),
  [],
);

const videoTrack = v.object({
  index: count,
  id: v.optional(v.nullable(count), null),
  codec: text,
  profile: text,
  level: v.number(),
  width: positive,
  height: positive,
  // Absent in plans of earlier versions.
  isMirrored: v.optional(v.boolean(), false),
  rotation: v.picklist([0, 90, 180, 270]),
  stored: v.optional(
    v.nullable(
      v.object({ width: positive, height: positive, pixelAspect: v.object({ num: positive, den: positive }) }),
    ),
    null,
  ),
  averageRate: rate,
  declaredRate: rate,
  pixelFormat: text,
  bitDepth: positive,
  isHdr: v.boolean(),
  // Absent in plans of earlier versions.
  hdr: v.optional(v.nullable(v.picklist(HDR_FORMATS)), null),
  color: v.optional(v.nullable(v.object({ matrix: text, primaries: text, transfer: text, range: text })), null),
  // All tasks state the same.
  spherical: v.optional(v.nullable(spherical), null),
  isInterlaced: v.boolean(),
  isProgressive: v.boolean(),
  // Absent in plans of earlier versions.
  fieldOrder: v.optional(v.picklist(["flagged", "tff", "bff", "separate"]), "flagged"),
  packetsPerFrame: v.optional(v.picklist([1, 2]), 1),
  isSquare: v.boolean(),
  startSeconds: v.number(),
  durationSeconds: v.nullable(seconds),
  // Absent in plans of earlier versions.
  delaySeconds: v.optional(seconds, 0),
  pauses,
});

const audioTrack = v.object({
  index: count,
  id: v.optional(v.nullable(count), null),
  codec: text,
  profile: text,
  sampleRate: count,
  channels: positive,
  language: v.nullable(text),
  isDefault: v.boolean(),
  startSeconds: v.number(),
  durationSeconds: v.nullable(seconds),
  pauses,
});

const chromaticity = v.pipe(v.tuple([count, count]), v.readonly());
const hdrMetadata = v.object({
  mastering: v.nullable(
    v.object({
      red: chromaticity,
      green: chromaticity,
      blue: chromaticity,
      white: chromaticity,
      maxLuminance: count,
      minLuminance: count,
    }),
  ),
  light: v.nullable(v.object({ maxContent: count, maxAverage: count })),
});

const StoredPlan = v.object({
  /** How long before a chunk its source is read from. */
  seekBackSeconds: v.pipe(v.number(), v.minValue(0), v.maxValue(60)),
  /** The number of frames that the video will have; null when it is not known. */
  frames: v.optional(v.nullable(count), null),
  startSeconds: v.optional(v.number()),
  // Absent in plans of earlier versions.
  originSeconds: v.optional(v.number()),
  // All chunks state the same.
  hdrMetadata: v.optional(v.nullable(hdrMetadata), null),
  // Absent in plans of earlier versions.
  warnings: v.optional(ReportedWarnings, []),
  video: v.nullable(
    v.object({
      track: videoTrack,
      rate: v.object({ num: positive, den: positive }),
      renditions: v.pipe(
        v.array(
          v.object({
            name,
            width: positive,
            height: positive,
            maxBitrate: positive,
            buffer: positive,
            crf: v.number(),
            score: v.optional(v.number()),
          }),
        ),
        v.minLength(1),
        v.maxLength(50),
      ),
      holdUntilSeconds: seconds,
      // Frames from each keyframe to the next, from the first one.
      passthrough: v.nullable(
        v.object({ keyDistances: v.pipe(v.array(positive), v.maxLength(100_000)), isCopied: v.boolean() }),
      ),
    }),
  ),
  audio: v.pipe(
    v.array(
      v.pipe(
        v.object({
          name,
          track: audioTrack,
          padToSeconds: seconds,
          isCopied: v.boolean(),
          // Absent in plans of earlier versions.
          channels: v.optional(positive),
          surroundOf: v.optional(v.nullable(name), null),
        }),
        v.transform((one) => ({
          ...one,
          channels: one.channels ?? (one.isCopied ? one.track.channels : STEREO_CHANNELS),
        })),
      ),
    ),
    v.maxLength(64),
  ),
  durationSeconds: v.nullable(seconds),
  // Absent in plans of earlier versions.
  isTransport: v.optional(v.boolean(), false),
  clockStart: v.optional(v.nullable(v.number()), null),
});

/** A plan as the server stores it. */
export type StoredPlan = EncodePlan & {
  seekBackSeconds: number;
  /** The number of frames that the video will have; null when it is not known. */
  frames: number | null;
  /** When the file begins, of a source with an index: chunks seek to keyframes of the index. */
  startSeconds?: number | undefined;
  /** When the file begins, on its own timeline, of any source. */
  originSeconds?: number | undefined;
  /** The metadata of a source whose HDR is kept by a codec; else null. */
  hdrMetadata: HdrMetadata | null;
  /** What of the source is left out. */
  warnings: Warning[];
};

type Stored = v.InferOutput<typeof StoredPlan>;

/** A plan as JSON: its keyframes are many, and the distances between them are short numbers. */
export function toStored(plan: StoredPlan): Stored {
  const { video } = plan;
  if (!video?.passthrough) return { ...plan, video: video && { ...video, passthrough: null } };
  const { rate, passthrough } = video;
  const keys = passthrough.keyTimes.map((seconds) => Math.round((seconds * rate.num) / rate.den));
  const keyDistances = keys.slice(1).map((key, at) => key - (keys[at] ?? 0));
  return { ...plan, video: { ...video, passthrough: { keyDistances, isCopied: passthrough.isCopied } } };
}

function fromStored(plan: Stored): StoredPlan {
  const { video } = plan;
  if (!video?.passthrough) return { ...plan, video: video && { ...video, passthrough: null } };
  const { rate, passthrough } = video;
  const keyTimes = [0];
  let frame = 0;
  for (const distance of passthrough.keyDistances) {
    frame += distance;
    keyTimes.push((frame * rate.den) / rate.num);
  }
  return { ...plan, video: { ...video, passthrough: { keyTimes, isCopied: passthrough.isCopied } } };
}

/** Throws MediaError `encode_failed` for a plan of another version of the worker. */
export function parsePlan(json: unknown): StoredPlan {
  const parsed = v.safeParse(StoredPlan, json);
  if (!parsed.success) throw new MediaError("encode_failed", "The stored plan is not one of this version.", true);
  return fromStored(parsed.output);
}
