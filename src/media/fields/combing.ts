/** What the lines of some frames show: which field of a frame is the earlier one, or that both are of the same time. */
export type Verdict = "tff" | "bff" | "progressive" | "unknown";

/** Levels by which a line differs from the lines above and below it, or from itself in the next frame. */
const DIFFERENCE = 12;
/** The share of all pixels that must be combed in the farthest pairing: less is noise, or a still image. */
const MIN_SHARE = 0.0005;
const MIN_PIXELS = 200;

/**
 * Compares how well the odd lines of a frame, of the one before and of the one after fit between its even lines, where
 * something moves. In a progressive frame its own ones fit best. In an interlaced frame they are half a frame away in time,
 * as are one neighbor's lines, and the other neighbor's are one and a half away. An image that has lines by
 * itself, such as text that scrolls, misleads a comparison of own lines alone, as `idet` does it.
 */
export class Combing {
  readonly #width: number;
  readonly #height: number;
  #before: Buffer | null = null;
  #frame: Buffer | null = null;
  #own = 0;
  #previous = 0;
  #next = 0;
  #pixels = 0;

  constructor(width: number, height: number) {
    this.#width = width;
    this.#height = height;
  }

  /** `after`: the luma of the next frame. */
  add(after: Buffer): void {
    if (this.#before && this.#frame) this.#compare(this.#before, this.#frame, after);
    [this.#before, this.#frame] = [this.#frame, after];
  }

  verdict(): Verdict {
    const own = this.#own;
    const previous = this.#previous;
    const next = this.#next;
    const near = Math.min(previous, next);
    const far = Math.max(previous, next);
    if (far < Math.max(MIN_PIXELS, this.#pixels * MIN_SHARE)) return "unknown";
    if (own < near / 2) return "progressive";
    const isBetween = own <= near * 2 && own >= far / 10;
    if (!isBetween || far < near * 1.3) return "unknown";
    return previous < next ? "tff" : "bff";
  }

  #compare(before: Buffer, frame: Buffer, after: Buffer): void {
    const width = this.#width;
    for (let y = 1; y < this.#height - 1; y += 2) {
      const end = (y + 1) * width;
      for (let at = y * width; at < end; at++) {
        const own = frame[at] as number;
        const above = frame[at - width] as number;
        const previous = before[at] as number;
        const next = after[at] as number;
        const isStill =
          Math.abs(own - previous) <= DIFFERENCE &&
          Math.abs(own - next) <= DIFFERENCE &&
          Math.abs(above - (before[at - width] as number)) <= DIFFERENCE &&
          Math.abs(above - (after[at - width] as number)) <= DIFFERENCE;
        if (isStill) continue;
        const below = frame[at + width] as number;
        const low = Math.min(above, below) - DIFFERENCE;
        const high = Math.max(above, below) + DIFFERENCE;
        if (own < low || own > high) this.#own++;
        if (previous < low || previous > high) this.#previous++;
        if (next < low || next > high) this.#next++;
      }
    }
    this.#pixels += (width * this.#height) / 2;
  }
}
