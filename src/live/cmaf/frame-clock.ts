import { type Rate, reducedRate } from "#lib/codecs";

/** Frames of all standard rates, and milliseconds, last a whole number of its units. */
export const VIDEO_TIMESCALE = 120_000;
const PER_MS = VIDEO_TIMESCALE / 1000;

/**
 * Timestamps are rounded to milliseconds, and so is the first one: at a constant frame rate they are up to 1 ms off the
 * grid. Truncation and a slow drift add to that.
 */
const TOLERANCE = 1.5 * PER_MS;
/** Frames after which a rate is chosen by their average, which then separates 30 from 29.97. */
const MEASURED_FRAMES = 20;
/** Units per frame at 60, 59.94, 50, 48, 30, 29.97, 25, 24, 23.976, 15, 12, 10 and 120 frames per second. */
const STANDARD_STEPS = [2000, 2002, 2400, 2500, 4000, 4004, 4800, 5000, 5005, 8000, 10_000, 12_000, 1000];
/** 240 frames per second: with a finer grid any timestamp is on it. */
const MIN_STEP = 500;

/**
 * Places frames, whose timestamps are in milliseconds, on the grid of their frame rate, in units of `VIDEO_TIMESCALE`. At
 * a constant rate all frames last exactly as long; a dropped frame leaves a gap of a whole number of frames. No frame is
 * moved by more than 1.5 ms, so a variable rate keeps its times, and errors do not add up. The first composition offset of
 * a stream that does not state its rate keeps its rounding.
 */
export class FrameClock {
  readonly #steps: readonly number[];
  #step: number | null = null;
  /** The time of the last frame: exact, because a frame of the stated rate may not last a whole number of units. */
  #last = 0;
  /** Its time before it was moved to the grid. */
  #raw = 0;
  #origin = { ms: 0, time: 0 };
  #measured = { time: 0, frames: 0 };
  #total = { time: 0, frames: 0 };

  /** `stated`: the frame rate in the stream, which is tried first. */
  constructor(stated: Rate | null) {
    const step = stated ? (VIDEO_TIMESCALE * stated.den) / stated.num : 0;
    this.#steps = step >= MIN_STEP ? [step, ...STANDARD_STEPS] : STANDARD_STEPS;
    if (step >= MIN_STEP && step <= VIDEO_TIMESCALE) this.#step = step;
  }

  /** Begins with a frame at `time`. */
  start(ms: number, time: number): void {
    this.#origin = { ms, time };
    this.#last = time;
    this.#raw = time;
    this.#measured = { time, frames: 0 };
  }

  /** The decode time of the next frame, later than that of the one before. */
  next(ms: number): number {
    const before = Math.round(this.#last);
    const time = this.#origin.time + (ms - this.#origin.ms) * PER_MS;
    this.#measured.frames++;
    const predicted = this.#predict(time);
    if (predicted !== null) this.#last = predicted;
    else {
      this.#chooseStep(time);
      this.#last = Math.max(this.#predict(time) ?? time, before + 1);
    }
    this.#raw = time;
    const next = Math.round(this.#last);
    this.#total.time += next - before;
    this.#total.frames++;
    return next;
  }

  /** The composition offset of the frame at `time`, whose timestamp was `ms`, from that in milliseconds. */
  compositionOffset(time: number, ms: number, offsetMs: number): number {
    const exact = this.#origin.time + (ms + offsetMs - this.#origin.ms) * PER_MS - time;
    if (this.#step === null) return Math.round(exact);
    const onGrid = Math.round(exact / this.#step) * this.#step;
    return Math.round(Math.abs(exact - onGrid) <= TOLERANCE ? onGrid : exact);
  }

  /** When the next frame is expected, in the milliseconds of `start`. */
  get expectedMs(): number {
    return this.#origin.ms + (this.#last + this.frameDuration - this.#origin.time) / PER_MS;
  }

  /** How long a frame is expected to last. */
  get frameDuration(): number {
    const average = this.#total.frames > 0 ? this.#total.time / this.#total.frames : VIDEO_TIMESCALE / 30;
    return Math.max(1, Math.round(this.#step ?? average));
  }

  get rate(): Rate {
    return this.#step === null ? frameRateOf(this.#total.time, this.#total.frames) : frameRateOf(this.#step, 1);
  }

  #predict(time: number): number | null {
    if (this.#step === null) return null;
    const frames = Math.max(1, Math.round((time - this.#last) / this.#step));
    const predicted = this.#last + frames * this.#step;
    return Math.abs(time - predicted) <= TOLERANCE ? predicted : null;
  }

  /** By the average since the last time that no rate fitted, or else by the last frame alone. */
  #chooseStep(time: number): void {
    const { frames } = this.#measured;
    const average = (time - this.#measured.time) / frames;
    if (frames >= MEASURED_FRAMES) {
      const step = nearest(this.#steps, average);
      // The grid so far was wrong by more than the tolerance, so the frame itself is where it starts again.
      this.#step = Math.abs(step - average) <= TOLERANCE / frames + step * 0.0002 ? step : null;
      if (this.#step !== null) return;
    }
    const duration = time - this.#raw;
    const step = nearest(this.#steps, duration);
    this.#step = Math.abs(step - duration) <= TOLERANCE ? step : null;
    this.#measured = { time, frames: 0 };
  }
}

const nearest = (steps: readonly number[], wanted: number): number =>
  steps.reduce((best, step) => (Math.abs(step - wanted) < Math.abs(best - wanted) ? step : best));

/** The frame rate of that many frames in that time: a standard one if it is near, which jitter and gaps allow. */
export function frameRateOf(time: number, frames: number): Rate {
  const average = frames > 0 && time > 0 ? time / frames : VIDEO_TIMESCALE / 30;
  const step = nearest(STANDARD_STEPS, average);
  if (Math.abs(step - average) <= step * 0.0004) return reducedRate({ num: VIDEO_TIMESCALE, den: step });
  return { num: Math.max(1, Math.round(VIDEO_TIMESCALE / average)), den: 1 };
}
