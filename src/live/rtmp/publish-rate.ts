import { RejectedMedia } from "./fault.ts";
import type { RtmpLimits } from "./limits.ts";
import { RateWindow } from "./rate-window.ts";

/** Limits what a publisher sends over a sliding window. Methods throw RejectedMedia when a limit is exceeded. */
export class PublishRate {
  readonly #limits: Pick<RtmpLimits, "maxBitrate" | "maxMessageRate" | "windowSeconds">;
  readonly #bits: RateWindow;
  readonly #messages: RateWindow;

  constructor(limits: Pick<RtmpLimits, "maxBitrate" | "maxMessageRate" | "windowSeconds">) {
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
