import { audioCodecs } from "#lib/codecs";
import type { InitSegment } from "#lib/isobmff";
import { firstFrameOf } from "#protocol/task.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { type Segment, SHORT_SECONDS, type Written } from "../package.ts";
import { audioBitrate, type PlannedAudio } from "../plan.ts";
import { firstPacketOf } from "./audio-grid.ts";
import { segmentFramesOf } from "./passthrough-parts.ts";
import type { StoredPlan } from "./stored-plan.ts";
import { videoRenditions } from "./video-runs.ts";
import { segmentName } from "./written-rows.ts";

/** Frames by which the length that a container states may be wrong. */
const TOLERANCE_FRAMES = 2;
const AUDIO_TOLERANCE_SECONDS = 0.1;

/**
 * The frames of each segment that the video will have; null when its length is not known. A last one that may be joined
 * with the one before it is not listed: a listed segment that never exists stops players. If the video is copied, segments
 * begin at keyframes of the source.
 */
export function predictedVideo(plan: StoredPlan, spec: EncodingSpec): number[] | null {
  const { video, frames } = plan;
  const { segment_seconds } = spec;
  if (!video || !frames) return null;
  const { rate, passthrough } = video;
  if (passthrough) {
    const copied = segmentFramesOf(passthrough, rate, { spec, plan });
    return copied.map((start, index) => (copied[index + 1] ?? frames) - start);
  }
  const least = TOLERANCE_FRAMES + (SHORT_SECONDS * rate.num) / rate.den;
  const starts = [0];
  for (let number = 1; firstFrameOf(number, segment_seconds, rate) + least < frames; number++)
    starts.push(firstFrameOf(number, segment_seconds, rate));
  return starts.map((start, index) => (starts[index + 1] ?? frames) - start);
}

/** The samples of each segment of an audio track. */
export function predictedAudio(
  { track, padToSeconds, isCopied }: PlannedAudio,
  { durationSeconds }: StoredPlan,
  spec: EncodingSpec,
): number[] {
  const { audio } = spec;
  const { packetSamples } = audioCodecs[audio.codec];
  const rate = isCopied ? track.sampleRate : audio.sample_rate;
  const own = track.durationSeconds === null ? null : Math.max(0, track.startSeconds) + track.durationSeconds;
  const seconds = padToSeconds || (own ?? durationSeconds ?? 0);
  const packets = Math.ceil((seconds * rate) / packetSamples) + 1;
  const startOf = (number: number) => firstPacketOf(number, spec, rate);
  const least = ((SHORT_SECONDS + AUDIO_TOLERANCE_SECONDS) * rate) / packetSamples;
  const starts = [0];
  for (let number = 1; startOf(number) + least < packets; number++) starts.push(startOf(number));
  return starts.map((start, index) => ((starts[index + 1] ?? packets) - start) * packetSamples);
}

/** All segments that a video rendition will have, as if each used all of its maximum bitrate. */
export function listedVideo(plan: StoredPlan, spec: EncodingSpec, name: string, init: InitSegment): Written {
  const { video } = plan;
  const lengths = predictedVideo(plan, spec);
  const rendition = videoRenditions(plan, spec).find((one) => one.name === name);
  if (!video || !lengths || !rendition) throw new Error(`The length of ${name} is not known`);
  const ticks = (init.timescale * video.rate.den) / video.rate.num;
  return listed(
    { name, init },
    lengths.map((frames) => frames * ticks),
    rendition.maxBitrate,
  );
}

export const listedAudio = (plan: StoredPlan, spec: EncodingSpec, one: PlannedAudio, init: InitSegment): Written =>
  listed({ name: one.name, init }, predictedAudio(one, plan, spec), audioBitrate(one, spec));

function listed({ name, init }: { name: string; init: InitSegment }, durations: number[], bitrate: number): Written {
  let start = 0;
  const segments = durations.map((duration, index): Segment => {
    const durationSeconds = duration / init.timescale;
    const bytes = Math.round((bitrate * durationSeconds) / 8);
    const segment = { name: segmentName(index), bytes, start, duration, durationSeconds, first: null };
    start += duration;
    return segment;
  });
  return { name, init, segments, durationSeconds: start / init.timescale };
}
