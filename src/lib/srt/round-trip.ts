/** Acknowledgements whose answer is awaited. At one in 10 ms, 160 ms: answers that take longer are not measured. */
const AWAITED = 64;
const INITIAL = { rtt: 100_000, variance: 50_000 };

/** The round-trip time, from acknowledgements and their answers (draft-sharabayko-srt-01, section 4.10). Microseconds. */
export class RoundTrip {
  rttUs: number = INITIAL.rtt;
  varianceUs: number = INITIAL.variance;
  #number = 0;
  readonly #sentAt = new Float64Array(AWAITED);
  readonly #numbers = new Uint32Array(AWAITED);

  /** The number of an acknowledgement that is sent at `now`, in milliseconds of a monotonic clock. */
  begin(now: number): number {
    this.#number = (this.#number + 1) >>> 0 || 1;
    const slot = this.#number % AWAITED;
    this.#numbers[slot] = this.#number;
    this.#sentAt[slot] = now;
    return this.#number;
  }

  /** The peer has answered the acknowledgement. Unknown numbers are ignored. */
  end(number: number, now: number): void {
    const slot = number % AWAITED;
    if (number === 0 || this.#numbers[slot] !== number) return;
    this.#numbers[slot] = 0;
    const sample = (now - (this.#sentAt[slot] as number)) * 1000;
    this.varianceUs += (Math.abs(this.rttUs - sample) - this.varianceUs) / 4;
    this.rttUs += (sample - this.rttUs) / 8;
  }
}
