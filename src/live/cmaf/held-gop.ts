import type { Frame } from "./part-buffer.ts";

/** The frames that are kept have at most so many bytes: a longer group cannot be repeated. */
const MAX_BYTES = 16 * 2 ** 20;
const MAX_FRAMES = 2000;

type Kept = { data: Buffer; presentation: number };

/**
 * The frames since the last keyframe. Where the last one lasts longer than a part may, all are repeated, each for the shortest
 * possible time, until the last one: a decoder then shows the same image again, can begin there, and continues with the next
 * frame. It works alike for all codecs.
 */
export class HeldGop {
  #frames: Kept[] | null = null;
  #bytes = 0;

  /** Each frame, in the order of decoding. */
  add({ time, data, isSync, compositionOffset }: Frame): void {
    if (isSync) {
      this.#frames = [];
      this.#bytes = 0;
    }
    if (!this.#frames) return;
    this.#frames.push({ data, presentation: time + compositionOffset });
    this.#bytes += data.length;
    if (this.#bytes > MAX_BYTES || this.#frames.length > MAX_FRAMES) this.#frames = null;
  }

  /** Whether there is a keyframe, and not too much after it. */
  get isComplete(): boolean {
    return this.#frames !== null;
  }

  /**
   * The frames again, decoded from `time` on and presented from `presentation` on, in units of time of 1 each. Empty when it is not
   * complete.
   */
  repeated(time: number, presentation: number): Frame[] {
    const frames = this.#frames ?? [];
    const ranks = new Map(
      frames.toSorted((a, b) => a.presentation - b.presentation).map((frame, rank) => [frame, rank] as const),
    );
    return frames.map((frame, index) => ({
      data: frame.data,
      time: time + index,
      duration: 1,
      isSync: index === 0,
      compositionOffset: presentation + (ranks.get(frame) ?? 0) - (time + index),
    }));
  }
}
