import type { LiveSample } from "#lib/codecs";
import type { PublishWarning } from "#lib/publishing";

/** What a publisher sends, measured over the last seconds. Null where there is nothing to measure. */
export type StreamHealth = {
  /** bit/s of audio and video. */
  bitrate: number;
  /** Frames per second. */
  frameRate: number | null;
  /** Frames that are missing between those that arrived. Null while there are too few, and without a constant frame rate. */
  droppedFrames: number | null;
  /** The longest interval between the last keyframes. */
  keyframeSeconds: number | null;
  /** Seconds of media in a second of time: below 1 the connection is too slow, or the encoder. */
  speed: number | null;
  /** What is wrong, and what to do. */
  advice: string[];
  /** What is not played, or not as sent. */
  warnings: PublishWarning[];
};

const WINDOW_MS = 10_000;
const STEP_MS = 1000;
const MAX_STEPS = WINDOW_MS / STEP_MS;
const KEYFRAMES = 4;
const MAX_WARNINGS = 10;
const LONG_KEYFRAME_SECONDS = 4.1;
const SLOW = 0.97;
/** Timestamps that go further are jumps, which the packager reports. */
const MAX_STEP_SECONDS = 2;

/** Fewer intervals between frames say nothing about the frame rate. */
const MIN_INTERVALS = 25;
/** The most intervals of each step. More frames than this per second are not counted, because a publisher could send any number. */
const MAX_INTERVALS = 500;
/** A constant frame rate has at least this share of intervals that are about as long as the median. */
const REGULAR_SHARE = 0.8;
const REGULAR = { ratio: 0.25, roundingMs: 1 };
/** Advice begins at this share of all frames. */
const MANY_DROPPED = 0.01;

/** `intervals`: between frames of video, in ms. */
type Step = { atMs: number; bytes: number; frames: number; mediaMs: number; intervals: number[] };

const newStep = (atMs: number): Step => ({ atMs, bytes: 0, frames: 0, mediaMs: 0, intervals: [] });

/** Measures the stream of one connection. Each sample takes constant time. */
export class HealthMeter {
  readonly #steps: Step[];
  #lastTimestamp: number | null = null;
  #keyframeAt: number | null = null;
  readonly #intervals: number[] = [];
  #hasVideo = false;
  #warnings: readonly PublishWarning[] = [];

  constructor(nowMs: number) {
    this.#steps = [newStep(nowMs)];
  }

  /** Replaces a warning with the same code and message. */
  warn(warning: PublishWarning): void {
    this.withdraw(warning.code, warning.message);
    this.#warnings = [...this.#warnings, warning].slice(-MAX_WARNINGS);
  }

  /** Removes warnings with this code; only that with `message`, if it is present. */
  withdraw(code: PublishWarning["code"], message?: string): void {
    this.#warnings = this.#warnings.filter(
      (one) => one.code !== code || (message !== undefined && one.message !== message),
    );
  }

  add({ kind, timestamp, isKeyframe, data }: LiveSample, nowMs: number): void {
    let step = this.#steps.at(-1) as Step;
    if (nowMs - step.atMs >= STEP_MS) {
      step = newStep(nowMs);
      this.#steps.push(step);
      if (this.#steps.length > MAX_STEPS) this.#steps.shift();
    }
    step.bytes += data.length;
    if (kind === "audio" && this.#hasVideo) return;
    if (kind === "video") {
      if (!this.#hasVideo) this.#lastTimestamp = null;
      this.#hasVideo = true;
      step.frames++;
    }
    // Unsigned 32 bits that wrap.
    const passedMs = this.#lastTimestamp === null ? 0 : (timestamp - this.#lastTimestamp) | 0;
    this.#lastTimestamp = timestamp;
    const isJump = passedMs < 0 || passedMs > MAX_STEP_SECONDS * 1000;
    if (!isJump) step.mediaMs += passedMs;
    const isInterval = !isJump && kind === "video" && passedMs > 0;
    if (isInterval && step.intervals.length < MAX_INTERVALS) step.intervals.push(passedMs);
    if (isJump) this.#keyframeAt = null;
    if (kind === "video" && isKeyframe) this.#keyframe(timestamp);
  }

  /** `nowMs` as for `add`. */
  read(nowMs: number): StreamHealth {
    const steps = this.#steps.filter(({ atMs }) => nowMs - atMs <= WINDOW_MS);
    const sum = (key: "bytes" | "frames" | "mediaMs") => steps.reduce((total, step) => total + step[key], 0);
    const seconds = Math.max(STEP_MS, nowMs - (steps[0]?.atMs ?? nowMs)) / 1000;
    const isMeasured = seconds >= MAX_STEPS / 2;
    const keyframeSeconds = this.#intervals.length > 0 ? Math.max(...this.#intervals) : null;
    const mediaSeconds = sum("mediaMs") / 1000;
    const frames = sum("frames");
    const droppedFrames = droppedBetween(steps.flatMap(({ intervals }) => intervals));
    const speed = isMeasured ? round(mediaSeconds / seconds) : null;
    return {
      bitrate: Math.round((sum("bytes") * 8) / seconds),
      frameRate: this.#hasVideo && mediaSeconds > 0 ? round(frames / mediaSeconds) : null,
      droppedFrames,
      keyframeSeconds: keyframeSeconds === null ? null : round(keyframeSeconds),
      speed,
      advice: adviceFor({ keyframeSeconds, speed, frames, droppedFrames }),
      warnings: [...this.#warnings],
    };
  }

  #keyframe(timestamp: number): void {
    if (this.#keyframeAt !== null) {
      this.#intervals.push(((timestamp - this.#keyframeAt) | 0) / 1000);
      if (this.#intervals.length > KEYFRAMES) this.#intervals.shift();
    }
    this.#keyframeAt = timestamp;
  }
}

/**
 * Encoders that are too slow, or whose connection is, leave frames out, and the timestamps of the others stay. So a gap in a
 * constant frame rate is as many frames as fit into it.
 */
function droppedBetween(intervals: readonly number[]): number | null {
  if (intervals.length < MIN_INTERVALS) return null;
  const median = intervals.toSorted((a, b) => a - b)[Math.floor(intervals.length / 2)] as number;
  const tolerance = Math.max(REGULAR.roundingMs, median * REGULAR.ratio);
  const regular = intervals.filter((interval) => Math.abs(interval - median) <= tolerance);
  if (regular.length < intervals.length * REGULAR_SHARE) return null;
  // Timestamps are whole milliseconds: the mean is the exact interval.
  const mean = regular.reduce((total, interval) => total + interval, 0) / regular.length;
  return intervals.reduce((total, interval) => total + Math.max(0, Math.round(interval / mean) - 1), 0);
}

type Measured = Pick<StreamHealth, "keyframeSeconds" | "speed" | "droppedFrames"> & { frames: number };

function adviceFor({ keyframeSeconds, speed, frames, droppedFrames }: Measured): string[] {
  const advice: string[] = [];
  if (keyframeSeconds !== null && keyframeSeconds > LONG_KEYFRAME_SECONDS)
    advice.push(
      `Keyframes are ${keyframeSeconds.toFixed(1)} s apart, which adds latency. Set the keyframe interval of the encoder to 2 s.`,
    );
  if (speed !== null && speed < SLOW)
    advice.push(
      `The stream arrives at ${Math.round(speed * 100)} % of real time. Lower the bitrate, or use a faster preset or connection.`,
    );
  if (droppedFrames !== null && droppedFrames > MANY_DROPPED * frames)
    advice.push(
      `${droppedFrames} frames of the last ${WINDOW_MS / 1000} s are missing. Lower the bitrate, or use a faster preset or connection.`,
    );
  return advice;
}

const round = (value: number) => Math.round(value * 100) / 100;
