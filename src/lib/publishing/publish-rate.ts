import { RateWindow } from "./rate-window.ts";
import { RejectedMedia } from "./rejected-media.ts";

export type RateLimits = {
  /** Bits per second that a publisher sends, over `windowSeconds`; an accepted publish may have another one. */
  maxBitrate: number;
  /** Messages, or packets, per second that a publisher sends, over `windowSeconds`. */
  maxMessageRate: number;
  /** Seconds over which rates are measured: what a publisher sends at once after its network was interrupted. */
  windowSeconds: number;
};

/** Limits what a publisher sends over a sliding window. Methods throw RejectedMedia when a limit is exceeded. */
export class PublishRate {
  readonly #limits: RateLimits;
  readonly #bits: RateWindow;
  readonly #messages: RateWindow;

  constructor(limits: RateLimits) {
    this.#limits = limits;
    const now = performance.now();
    this.#bits = new RateWindow(limits.windowSeconds, now);
    this.#messages = new RateWindow(limits.windowSeconds, now);
  }

  addBytes(bytes: number): void {
    const { maxBitrate, windowSeconds } = this.#limits;
    if (this.#bits.add(bytes * 8, performance.now()) <= maxBitrate * windowSeconds) return;
    const megabits = Math.round(maxBitrate / 10_000) / 100;
    throw new RejectedMedia(`The stream exceeds ${megabits} Mbit/s. Lower the bitrate of the encoder.`);
  }

  addMessage(): void {
    const { maxMessageRate, windowSeconds } = this.#limits;
    if (this.#messages.add(1, performance.now()) <= maxMessageRate * windowSeconds) return;
    throw new RejectedMedia(`The stream has more than ${maxMessageRate} messages per second. Send it in real time.`);
  }
}
