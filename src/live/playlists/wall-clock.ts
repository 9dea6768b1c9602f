/** The time of day at a position of the media timeline, in ms since the epoch. */
export type Anchor = { wallMs: number; seconds: number };

/** Media without an interruption: from its anchor to that of the next period. */
export type Period = Anchor & {
  /** Number of interruptions before it. */
  number: number;
};

/** A manifest of the periods has about 150 kB then. A publisher that reconnects more often loses the beginning of the window. */
const MAX_PERIODS = 100;

/**
 * The time of day of media. They are continuous, while the time of day advances when the publisher is away: each
 * interruption that is over begins another period.
 */
export class WallClock {
  #periods: Period[];

  constructor(startedAtMs: number) {
    this.#periods = [{ number: 0, wallMs: startedAtMs, seconds: 0 }];
  }

  /** At the end of the media timeline. */
  get anchor(): Anchor {
    const { wallMs, seconds } = this.#periods.at(-1) as Period;
    return { wallMs, seconds };
  }

  /** Periods that may have segments that are listed: at least one, at most 100. */
  get periods(): readonly Period[] {
    return this.#periods;
  }

  /** The time of day of media of the last period. */
  wallMs(seconds: number): number {
    return timeIn(this.anchor, seconds);
  }

  /** Continues that of another timeline. */
  restore(number: number, anchor: Anchor): void {
    this.#periods = [{ ...anchor, number }];
  }

  /** The media from `seconds` on have that time of day, after so many interruptions. Nothing before `oldest` is listed. */
  resume(number: number, { wallMs, seconds }: Anchor, oldest: number): void {
    // Dates never go back, even if the clock has been set.
    const next = { number, wallMs: Math.max(wallMs, this.wallMs(seconds)), seconds };
    const ended = this.#periods.filter((one, index) => {
      const end = this.#periods[index + 1]?.seconds ?? seconds;
      return one.number < number && end > oldest;
    });
    this.#periods = [...ended, next].slice(-MAX_PERIODS);
  }
}

/** The time of day at `seconds`, which are after the anchor or not long before it. */
export const timeIn = ({ wallMs, seconds: at }: Anchor, seconds: number): number => wallMs + (seconds - at) * 1000;
