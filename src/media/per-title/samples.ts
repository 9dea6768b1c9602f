import { firstFrameOf } from "../../protocol/task.ts";
import type { Rate } from "../ladder.ts";

/** A part of the source, in frames of the constant frame grid; `endFrame` is exclusive. */
export type Sample = { firstFrame: number; endFrame: number };

const SAMPLE_SECONDS = 1;
/** Of the source: what one second of samples takes is about three seconds of the encode. */
const SHARE = 1 / 30;
/** More would change the choice little, and delay the start of early playback. */
const MOST = 12;

/**
 * The samples of a source that lasts so many seconds, spread evenly over it: one for every half a minute, at least one and at
 * most 12. Each begins where a GOP does, so that it has a keyframe as the encode has there.
 */
export function samplesOf(durationSeconds: number, rate: Rate, gopSeconds: number): Sample[] {
  const count = Math.max(1, Math.min(MOST, Math.floor((durationSeconds * SHARE) / SAMPLE_SECONDS)));
  const length = Math.max(1, Math.round((SAMPLE_SECONDS * rate.num) / rate.den));
  return Array.from({ length: count }, (_, index) => {
    const middle = ((index + 0.5) * durationSeconds) / count - SAMPLE_SECONDS / 2;
    const firstFrame = firstFrameOf(Math.max(0, Math.floor(middle / gopSeconds)), gopSeconds, rate);
    return { firstFrame, endFrame: firstFrame + length };
  });
}
