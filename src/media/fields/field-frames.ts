import type { Rate } from "#lib/codecs";
import type { VideoTrack } from "../probe.ts";
import type { Verdict } from "./combing.ts";

/*
 * Two codecs store a field as an image. The fields of H.264 (PAFF) are packets, from which the decoder returns frames: only
 * the rate of the packets is twice that of the frames. The decoder of HEVC returns the fields (field_seq_flag, ITU-T H.265,
 * E.3.1), each with half of the lines.
 */

/** What a decoder states of a frame. */
export type ShownFrame = { seconds: number; field: Verdict };

/** Rates of fields: 50 and 59.94, and what clocks make of them. */
const MIN_RATE = 40;
const MAX_RATE = 62;
/** A field has no more lines than this: 1080 lines are two fields of 540, stored as 544. */
const MAX_FIELD_LINES = 576;
/** Fewer show nothing. */
const MIN_FRAMES = 4;
/** A frame is as long as two packets, within this share. */
const TOLERANCE = 0.2;

/** Whether packets may be fields. The decoder has to show it. */
export function isOfFieldRate({ codec, averageRate: { num, den }, stored }: VideoTrack): boolean {
  const rate = num / den;
  if (rate < MIN_RATE || rate > MAX_RATE) return false;
  return codec === "h264" || (codec === "hevc" && (stored?.height ?? 0) <= MAX_FIELD_LINES);
}

/** The track with the rate and size of its frames. `frames`: the first ones that the decoder returns. */
export function asFrames(video: VideoTrack, frames: readonly ShownFrame[]): VideoTrack {
  if (frames.length < MIN_FRAMES) return video;
  if (video.codec === "h264") return isPaired(video, frames) ? { ...video, ...halfRates(video) } : video;
  const isAlternating = frames.every(({ field }, at) => field !== "progressive" && field !== frames[at - 1]?.field);
  return isAlternating && video.stored ? { ...video, ...halfRates(video), ...shownOf(video, video.stored) } : video;
}

/** Whether frames follow each other at half of the rate of the packets. */
function isPaired({ averageRate: { num, den } }: VideoTrack, frames: readonly ShownFrame[]): boolean {
  const distances = frames.slice(1).map(({ seconds }, at) => seconds - (frames[at] as ShownFrame).seconds);
  const usual = distances.sort((a, b) => a - b)[distances.length >> 1] as number;
  return Math.abs((usual * num) / den / 2 - 1) < TOLERANCE;
}

const half = ({ num, den }: Rate): Rate => ({ num, den: den * 2 });
const halfRates = ({ averageRate }: VideoTrack) => ({
  averageRate: half(averageRate),
  declaredRate: half(averageRate),
  packetsPerFrame: 2 as const,
});

/** The size of two fields. A pixel that is half as wide as high is that of a field; otherwise it is that of the frame. */
function shownOf(
  { rotation }: VideoTrack,
  { width, height, pixelAspect }: NonNullable<VideoTrack["stored"]>,
): Partial<VideoTrack> {
  const stated = pixelAspect.num / pixelAspect.den;
  const aspect = stated < FIELD_ASPECT ? stated * 2 : stated;
  const wide = Math.round(width * Math.max(1, aspect));
  const high = Math.round((2 * height) / Math.min(1, aspect));
  const isSideways = rotation === 90 || rotation === 270;
  return {
    ...(isSideways ? { width: high, height: wide } : { width: wide, height: high }),
    isInterlaced: true,
    isProgressive: false,
    fieldOrder: "separate",
    isSquare: aspect === 1,
  };
}
const FIELD_ASPECT = 0.8;
