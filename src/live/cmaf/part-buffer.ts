import type { TimedSample } from "#lib/isobmff";

/** A part of more is cut earlier: what is not written yet is in memory. */
const MAX_PART_BYTES = 4 * 2 ** 20;
const MAX_PART_SAMPLES = 1000;

/** `time`: of decoding, in `VIDEO_TIMESCALE`. */
export type Frame = TimedSample & { time: number };

/** The frames of the part that is being collected. `flush` takes them when another one would make it too long or too large. */
export class PartBuffer<F extends Frame = Frame> {
  readonly #units: () => number;
  readonly #flush: () => void;
  #frames: F[] = [];
  #bytes = 0;

  /** `units`: how long a part is at most, in `VIDEO_TIMESCALE`. */
  constructor(units: () => number, flush: () => void) {
    this.#units = units;
    this.#flush = flush;
  }

  get first(): F | undefined {
    return this.#frames[0];
  }

  /** Whether the part does not become too long with another frame of this duration. */
  fits(duration: number): boolean {
    const [first] = this.#frames;
    const last = this.#frames.at(-1);
    if (!first || !last) return true;
    return last.time + last.duration + duration - first.time <= this.#units();
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
