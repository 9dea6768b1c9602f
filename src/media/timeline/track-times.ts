import { FrameRates } from "./frame-rates.ts";

/** Durations of packets that are more than so many times the time from the first to the last one are wrong. */
const MOST_STATED = 2;

/** What the packets of one track say, one after the other. Times are in seconds, as in the file. */
export class TrackTimes {
  packets = 0;
  /** The time of the earliest packet; null while none has one. */
  first: number | null = null;
  readonly #rates: FrameRates | null;
  /** What the packets state in all that they last. */
  #stated = 0;
  /** The packet that is shown last, and how long it lasts; 0 when the container does not say. */
  #last = { seconds: Number.NEGATIVE_INFINITY, duration: 0 };

  constructor(isVideo: boolean) {
    this.#rates = isVideo ? new FrameRates() : null;
  }

  add(seconds: number | null, duration: number | null): void {
    this.packets++;
    if (seconds === null) return;
    this.#stated += duration ?? 0;
    this.first = this.first === null ? seconds : Math.min(this.first, seconds);
    if (seconds > this.#last.seconds) this.#last = { seconds, duration: duration ?? 0 };
    this.#rates?.add(seconds);
  }

  /** When the last packet ends; null when none has a time. */
  get end(): number | null {
    const { seconds, duration } = this.#last;
    if (this.first === null) return null;
    const span = seconds - this.first;
    // A header may state a duration for all packets that is much longer than they are apart.
    const isWrong = this.packets > 1 && this.#stated > MOST_STATED * span;
    if (duration > 0 && !isWrong) return seconds + duration;
    const apart = isWrong ? span / (this.packets - 1) : 0;
    return seconds + (this.rate ? 1 / this.rate : apart);
  }

  /** Frames per second of video; null when its frames have no common distance. */
  get rate(): number | null {
    this.#measured ??= { rate: this.#rates?.rate() ?? null };
    return this.#measured.rate;
  }
  #measured: { rate: number | null } | undefined;
}
