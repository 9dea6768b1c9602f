import type { TimedSample } from "./fragment.ts";
import { VIDEO_TIMESCALE } from "./frame-clock.ts";

/** A part of more is cut earlier: what is not written yet is in memory. */
const MAX_PART_BYTES = 4 * 2 ** 20;
const MAX_PART_SAMPLES = 1000;

/** `time`: of decoding, in `VIDEO_TIMESCALE`. */
export type Frame = TimedSample & { time: number };

/** The frames of the part that is being collected. `flush` takes them when another one would make it too long or too large. */
export class PartBuffer<F extends Frame = Frame> {
  readonly #units: number;
  readonly #flush: () => void;
  #frames: F[] = [];
  #bytes = 0;

  constructor(partSeconds: number, flush: () => void) {
    this.#units = partSeconds * VIDEO_TIMESCALE;
    this.#flush = flush;
  }

  /** Whether the part does not become too long with another frame of this duration. */
  fits(duration: number): boolean {
    const [first] = this.#frames;
    const last = this.#frames.at(-1);
    if (!first || !last) return true;
    return last.time + last.duration + duration - first.time <= this.#units;
  }

  append(frame: F): void {
    if (!this.fits(frame.duration)) this.#flush();
    this.#frames.push(frame);
    this.#bytes += frame.data.length;
    if (this.#bytes >= MAX_PART_BYTES || this.#frames.length >= MAX_PART_SAMPLES) this.#flush();
  }

  /** The frames so far; the next part begins. */
  take(): F[] {
    const frames = this.#frames;
    this.#frames = [];
    this.#bytes = 0;
    return frames;
  }
}
