import type { Rate } from "#lib/codecs";
import { firstFrameOf } from "#protocol/task.ts";

/** A part of the source, in frames of the constant frame grid; `endFrame` is exclusive. */
export type Sample = { firstFrame: number; endFrame: number };

/** The share of the source in samples: a second of them takes about as long as four seconds of the encode. */
const SHARE = 1 / 40;
/** In seconds, of all samples together. More would change the choice little, and delay the start of early playback. */
const MOST = 12;
const SAMPLE_SECONDS = 1;
/** One sample of a source with different scenes would be left to chance. */
const LEAST_SAMPLES = 3;
/** Fewer frames are hardly compressed. */
const LEAST_FRAMES = 10;

/**
 * The samples of a source that lasts so many seconds, spread evenly over it: together a fortieth of it, at most 12 s. There are at
 * least three, if need be of less than a second. Each begins where a GOP does, so that it has a keyframe as the encode has there.
 */
export function samplesOf(durationSeconds: number, rate: Rate, gopSeconds: number): Sample[] {
  const seconds = Math.min(MOST, durationSeconds * SHARE);
  const count = Math.max(LEAST_SAMPLES, Math.round(seconds / SAMPLE_SECONDS));
  const length = Math.max(LEAST_FRAMES, Math.round(((seconds / count) * rate.num) / rate.den));
  const samples = Array.from({ length: count }, (_, index) => {
    const middle = ((index + 0.5) * durationSeconds) / count;
    const firstFrame = firstFrameOf(Math.floor(middle / gopSeconds), gopSeconds, rate);
    return { firstFrame, endFrame: firstFrame + length };
  });
  // In a short source, several begin with the same GOP.
  return samples.filter(({ firstFrame }, index) => samples[index - 1]?.firstFrame !== firstFrame);
}
