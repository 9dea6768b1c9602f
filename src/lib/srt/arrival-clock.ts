/** Over which the fastest packet counts: clocks drift by at most a millisecond in it. */
const WINDOW_MS = 10_000;

/**
 * Maps the timestamps of a sender to the time here at which its packets arrive without delay: by the packet that was the
 * fastest in the last windows. It follows the drift of the sender's clock, and the wrap of its 32 bits of microseconds
 * (draft-sharabayko-srt-01, section 4.5.1.1). Milliseconds.
 */
export class ArrivalClock {
  #last: { raw: number; ms: number } | null = null;
  #current = { until: 0, offset: Number.POSITIVE_INFINITY };
  #previous = Number.POSITIVE_INFINITY;

  /** Returns when the packet with that timestamp, which arrived at `now`, was expected: not later than `now`. */
  expected(raw: number, now: number): number {
    const ms = this.#last === null ? raw / 1000 : this.#last.ms + ((raw - this.#last.raw) | 0) / 1000;
    this.#last = { raw, ms };
    if (now >= this.#current.until) {
      this.#previous = this.#current.offset;
      this.#current = { until: now + WINDOW_MS, offset: Number.POSITIVE_INFINITY };
    }
    this.#current.offset = Math.min(this.#current.offset, now - ms);
    return ms + Math.min(this.#current.offset, this.#previous);
  }
}
