import { FrameRates } from "./frame-rates.ts";

/** Durations of packets that are more than so many times the time from the first to the last one are wrong. */
const MOST_STATED = 2;

/** Times are rounded; a packet that is earlier by more than this begins where the container says, and not where it was computed. */
const ROUNDING_SECONDS = 0.002;
/** Audio that changes its rate lasts no less than this share of what it did. */
const LEAST_SHARE = 0.25;
/** No packet of a transport stream has more frames of audio that are worth hearing: the rate is that of the beginning again. */
const MOST_IN_GROUP = 64;

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

  /** Packets of audio since the last one whose time the container states, where the others are computed from it. */
  #group: { start: number; packets: number } | null = null;
  /** How long each of them lasts, where what they say is too long. */
  #measuredDuration: number | null = null;

  constructor(isVideo: boolean) {
    this.#rates = isVideo ? new FrameRates() : null;
  }

  add(seconds: number | null, duration: number | null): void {
    this.packets++;
    if (seconds === null) return;
    this.#stated += duration ?? 0;
    this.first = this.first === null ? seconds : Math.min(this.first, seconds);
    if (!this.#rates) this.#correct(seconds, duration ?? 0);
    if (seconds > this.#last.seconds) this.#last = { seconds, duration: duration ?? 0 };
    this.#rates?.add(seconds);
  }

  /**
   * A transport stream states the time of every tenth packet or so. ffmpeg computes the others with the sample rate of the
   * beginning: when the rate has become higher, the next stated time is earlier than the last computed one.
   */
  #correct(seconds: number, duration: number): void {
    const isEarlier = seconds < this.#last.seconds - ROUNDING_SECONDS;
    if (this.#group && isEarlier) {
      const measured = (seconds - this.#group.start) / this.#group.packets;
      if (measured > LEAST_SHARE * duration && measured < duration) this.#measuredDuration = measured;
    }
    if (!this.#group || isEarlier) {
      this.#group = { start: seconds, packets: 1 };
      // What was computed beyond it is not the end.
      if (isEarlier && this.#measuredDuration !== null) this.#last = { seconds, duration: this.#measuredDuration };
    } else if (++this.#group.packets > MOST_IN_GROUP) this.#measuredDuration = null;
  }

  /** When the last packet ends; null when none has a time. */
  get end(): number | null {
    const { seconds, duration } = this.#last;
    if (this.first === null) return null;
    if (this.#group && this.#measuredDuration !== null)
      return this.#group.start + this.#group.packets * this.#measuredDuration;
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
