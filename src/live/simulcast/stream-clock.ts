import type { LiveSample } from "#lib/codecs";

/** Timestamps that differ by more have jumped. */
const MAX_STEP_MS = 10_000;
/** At least so far a frame is from one before a jump: 25 frames per second. */
const MIN_GAP_MS = 40;
/** The time of the first sample, so that older samples of the other track are not before 0. */
const START_MS = 10_000;

/**
 * Places the samples of all publishers of a stream on one timeline, in milliseconds, that neither wraps nor jumps nor,
 * within a track, goes back.
 */
export class StreamClock {
  #anchor: { raw: number; ms: number } | null = null;
  #latestMs = START_MS;
  #sampledAt = 0;
  readonly #last = { video: 0, audio: 0 };

  /** `now` in milliseconds of a monotonic clock. */
  read({ kind, timestamp }: LiveSample, now: number): number {
    const passed = this.#anchor === null ? null : this.#anchor.ms + ((timestamp - this.#anchor.raw) | 0);
    const isJump = passed === null || Math.abs(passed - this.#latestMs) > MAX_STEP_MS;
    const gap = this.#sampledAt === 0 ? 0 : Math.max(MIN_GAP_MS, Math.round(now - this.#sampledAt));
    const ms = isJump ? this.#latestMs + gap : passed;
    this.#anchor = { raw: timestamp, ms };
    this.#latestMs = Math.max(this.#latestMs, ms);
    this.#sampledAt = now;
    this.#last[kind] = Math.max(this.#last[kind], ms);
    return this.#last[kind];
  }

  /** Another publisher follows, whose timestamps may begin anywhere. */
  resume(): void {
    this.#anchor = null;
  }
}
