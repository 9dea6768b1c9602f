/** More than the frames that any codec stores out of order. */
const REORDERED = 32;
/** Steps of the histogram in seconds: a tenth of the unit of Matroska and FLV. */
const STEP = 1e-4;
const MAX_STEPS = 5000;
/** Distances within these factors of the usual one are that one, rounded by the container or by a clock. */
const LEAST = 0.8;
const MOST = 1.25;
/** The share of all distances that must be alike for there to be a rate. */
const SHARE = 2 / 3;
const MIN_DISTANCES = 3;

/** The rate at which most frames of a track follow each other, from their times in any order that a codec stores. */
export class FrameRates {
  readonly #waiting: number[] = [];
  readonly #distances = new Map<number, number>();
  #last: number | null = null;

  /** `seconds`: the presentation time of the next packet. */
  add(seconds: number): void {
    let at = this.#waiting.length;
    while (at > 0 && (this.#waiting[at - 1] as number) > seconds) at--;
    this.#waiting.splice(at, 0, seconds);
    if (this.#waiting.length > REORDERED) this.#count(this.#waiting.shift() as number);
  }

  /** Frames per second; null where no distance is usual, or there are too few frames. Call it once, at the end. */
  rate(): number | null {
    for (const seconds of this.#waiting.splice(0)) this.#count(seconds);
    const steps = [...this.#distances].sort(([a], [b]) => a - b);
    const all = steps.reduce((sum, [, count]) => sum + count, 0);
    if (all < MIN_DISTANCES) return null;
    let below = 0;
    const [usual] = steps.find(([, count]) => {
      below += count;
      return below * 2 >= all;
    }) as [number, number];
    let alike = 0;
    let sum = 0;
    for (const [step, count] of steps) {
      if (step < usual * LEAST || step > usual * MOST) continue;
      alike += count;
      sum += step * count;
    }
    return alike / all < SHARE ? null : alike / (sum * STEP);
  }

  #count(seconds: number): void {
    const step = this.#last === null ? 0 : Math.round((seconds - this.#last) / STEP);
    this.#last = seconds;
    if (step <= 0) return;
    const count = this.#distances.get(step);
    if (count !== undefined || this.#distances.size < MAX_STEPS) this.#distances.set(step, (count ?? 0) + 1);
  }
}
