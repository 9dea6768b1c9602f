import type { TrackKind } from "./types.ts";

/**
 * Timestamps have 32 bits, but ffmpeg 5.1 wraps them at 2^31. Both are 0 modulo 2^31, so differences are computed there.
 */
const WRAP = 2 ** 31;
/** A step backward that reordering in the network or in a muxer explains. */
const MAX_BACK_MS = 200;
/** A longer step is not a pause: the clock of the publisher was set. */
const MAX_STEP_MS = 10_000;
/** A longer step of video, without audio meanwhile, is a pause. */
const MAX_FRAME_MS = 3000;
/** Unless the step before was almost as long: these are slides. */
const SLIDE_RATIO = 3;
/** Audio of a publisher is not further behind its video. */
const MAX_LAG_MS = 1500;
/** A longer step of video is possible when audio continues. */
const MAX_HELD_MS = 600_000;

/** `step`: from the sample before. */
type Last = { raw: number; ms: number; step: number | null };

/** Milliseconds from `b` to `a`, which may be negative. */
function difference(a: number, b: number): number {
  const distance = (((a - b) % WRAP) + WRAP) % WRAP;
  return distance >= WRAP / 2 ? distance - WRAP : distance;
}

const isNear = (ms: number) => Math.abs(ms) <= MAX_STEP_MS;

/**
 * Maps the timestamps of both tracks to milliseconds on one timeline without wraps and jumps. Where the timestamps of
 * video jump, its timeline continues after one frame, and that of audio follows, so that both stay in sync.
 */
export class Timeline {
  #video: Last | null = null;
  #audio: Last | null = null;
  /** Audio jumped before video, and continued by itself. */
  #isAudioAhead = false;

  /** `expected`: when the sample follows the last one, which was at `lastMs`; for timestamps that do not say it. */
  next(kind: TrackKind, raw: number, expected: (lastMs: number) => number): { ms: number; isJump: boolean } {
    const last = kind === "video" ? this.#video : this.#audio;
    const delta = last ? difference(raw, last.raw) : 0;
    const isJump = last !== null && (delta < -MAX_BACK_MS || (delta > MAX_STEP_MS && !this.#isHeld(kind, raw, delta)));
    const continued = last && !isJump ? last.ms + delta : null;
    const ms = continued ?? (kind === "video" ? this.#jumpVideo(raw, expected) : this.#jumpAudio(raw, delta, expected));
    const step = last && !isJump ? delta : null;
    if (kind === "video") this.#video = { raw, ms, step };
    else this.#audio = { raw, ms, step };
    return { ms, isJump };
  }

  /** Whether the frame before this one would have to be shown for so long that the publisher was away. */
  isPause(raw: number): boolean {
    if (!this.#video || this.#video.step === null) return false;
    const delta = difference(raw, this.#video.raw);
    return delta > Math.max(MAX_FRAME_MS, SLIDE_RATIO * this.#video.step) && delta <= MAX_STEP_MS;
  }

  /** Audio has continued while there was no video, on the same clock. */
  #isHeld(kind: TrackKind, raw: number, delta: number): boolean {
    const video = this.#video;
    const audio = this.#audio;
    if (kind !== "video" || !video || !audio || delta > MAX_HELD_MS) return false;
    const isSameClock = Math.abs(audio.ms - audio.raw - (video.ms - video.raw)) % WRAP < MAX_STEP_MS;
    return isSameClock && isNear(difference(raw, audio.raw));
  }

  #jumpVideo(raw: number, expected: (lastMs: number) => number): number {
    const audio = this.#audio;
    const distance = audio ? difference(raw, audio.raw) : 0;
    if (!this.#video) return audio ? audio.ms + (isNear(distance) ? distance : 0) : 0;
    const ms = expected(this.#video.ms);
    if (audio && this.#isAudioAhead && isNear(distance)) audio.ms = ms - distance;
    this.#isAudioAhead = false;
    return ms;
  }

  #jumpAudio(raw: number, delta: number, expected: (lastMs: number) => number): number {
    const video = this.#video;
    const distance = video ? difference(raw, video.raw) : 0;
    // After a step back that video has not made yet, its last frame says nothing.
    const isAhead = delta < 0 && distance < -MAX_LAG_MS;
    if (video && isNear(distance) && !isAhead) return video.ms + distance;
    this.#isAudioAhead = this.#audio !== null;
    if (this.#audio) return expected(this.#audio.ms);
    return video ? video.ms : 0;
  }
}
