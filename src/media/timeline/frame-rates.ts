/** More than the frames that any codec stores out of order. */
const REORDERED = 32;
/** Steps of the histograms in seconds: a tenth of the unit of Matroska and FLV. */
const STEP = 1e-4;
const MAX_STEPS = 5000;
/** Distances within these factors of the usual one are that one, rounded by the container or by a clock. */
const LEAST = 0.8;
const MOST = 1.25;
/** The share of all distances that must be alike. Otherwise they alternate, as with 24 frames per second on a screen with 60. */
const SHARE = 2 / 3;
/** Distances longer than so many usual ones are gaps. */
const GAP = 3;
const MIN_DISTANCES = 3;
/** So many distances show the pace of the frames around them: more than the period of any pulldown. */
const WINDOW = 8;
/** Paces are counted in groups that differ by this factor. */
const PACE = 1.02;
const PACES = Math.floor(Math.log(MOST) / Math.log(PACE));
/** The fastest pace is that of the motion when frames follow each other by it for so long, and so many of them do. */
const LEAST_SECONDS = 0.5;
const LEAST_SHARE = 0.01;
/** And by so much faster than all together. */
const FASTER = 1.3;

/** Distances between frames, in steps, with the number of each. */
class Distances {
  readonly steps = new Map<number, number>();
  count = 0;
  sum = 0;

  add(step: number, count = 1): void {
    this.steps.set(step, (this.steps.get(step) ?? 0) + count);
    this.count += count;
    this.sum += step * count;
  }

  addAll({ steps }: Distances): void {
    for (const [step, count] of steps) this.add(step, count);
  }
}

/**
 * The rate of the motion of a track, from the times of its frames in any order that a codec stores: that of the fastest part
 * which is more than a glitch. Freezes, gaps, and idle periods of a screen recorder do not lower it.
 */
export class FrameRates {
  readonly #waiting: number[] = [];
  readonly #recent: number[] = [];
  readonly #all = new Distances();
  /** By the logarithm of the mean distance of the frames before. */
  readonly #byPace = new Map<number, Distances>();
  #last: number | null = null;
  #sum = 0;
  #entries = 0;

  /** `seconds`: the presentation time of the next packet. */
  add(seconds: number): void {
    let at = this.#waiting.length;
    while (at > 0 && (this.#waiting[at - 1] as number) > seconds) at--;
    this.#waiting.splice(at, 0, seconds);
    if (this.#waiting.length > REORDERED) this.#count(this.#waiting.shift() as number);
  }

  /** Frames per second; null where there are too few frames. Call it once, at the end. */
  rate(): number | null {
    for (const seconds of this.#waiting.splice(0)) this.#count(seconds);
    if (this.#all.count < MIN_DISTANCES) return null;
    const usual = rateOf(this.#all);
    const fastest = this.#fastest();
    const fast = fastest === null ? usual : rateOf(fastest);
    // Where distances are irregular, as with a software timer, some windows are faster than others by chance.
    return fast > usual * FASTER ? fast : usual;
  }

  /** The distances of the fastest pace that is more than a glitch; null without one. */
  #fastest(): Distances | null {
    for (const first of [...this.#byPace.keys()].sort((a, b) => a - b)) {
      const alike = new Distances();
      for (let pace = first; pace <= first + PACES; pace++) {
        const distances = this.#byPace.get(pace);
        if (distances) alike.addAll(distances);
      }
      if (alike.sum * STEP >= LEAST_SECONDS && alike.count >= this.#all.count * LEAST_SHARE) return alike;
    }
    return null;
  }

  #count(seconds: number): void {
    const step = this.#last === null ? 0 : Math.round((seconds - this.#last) / STEP);
    this.#last = seconds;
    if (step <= 0) return;
    this.#recent.push(step);
    this.#sum += step;
    if (this.#recent.length > WINDOW) this.#sum -= this.#recent.shift() as number;
    this.#note(this.#all, step);
    if (this.#recent.length < WINDOW) return;
    const pace = Math.round(Math.log(this.#sum / WINDOW) / Math.log(PACE));
    const distances = this.#byPace.get(pace) ?? new Distances();
    this.#byPace.set(pace, distances);
    this.#note(distances, step);
  }

  /** A hostile file may have any number of different distances. */
  #note(distances: Distances, step: number): void {
    if (!distances.steps.has(step) && this.#entries++ >= MAX_STEPS) return;
    distances.add(step);
  }
}

/** Frames per second of distances: of those that are alike, or of all without gaps. */
function rateOf({ steps, count: all }: Distances): number {
  const sorted = [...steps].sort(([a], [b]) => a - b);
  let below = 0;
  const [usual] = sorted.find(([, count]) => {
    below += count;
    return below * 2 >= all;
  }) as [number, number];
  const alike = within(sorted, usual * LEAST, usual * MOST);
  const { count, sum } = alike.count / all < SHARE ? within(sorted, 0, usual * GAP) : alike;
  return count / (sum * STEP);
}

function within(sorted: readonly (readonly [number, number])[], least: number, most: number): Distances {
  const found = new Distances();
  for (const [step, count] of sorted) if (step >= least && step <= most) found.add(step, count);
  return found;
}
