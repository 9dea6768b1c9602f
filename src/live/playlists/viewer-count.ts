import { hash } from "node:crypto";

/** A viewer is a session that requested a playlist within this time. */
const WINDOW_MS = 30_000;
/**
 * The first entry of a Map takes time: its iterator passes the deleted ones, of which there are about as many as sessions.
 */
const FORGET_EVERY_MS = 1000;
/** About 8 MB. */
const MAX_SESSIONS = 100_000;

/** Counts the viewers of a channel. */
export class ViewerCount {
  /** Hash of the session -> its last request, the oldest first. */
  readonly #seen = new Map<number, number>();
  #forgottenMs = 0;

  /** Notes a request. `session` is any string. */
  see(session: string, nowMs: number): void {
    // 48 bits: among 100,000 sessions the probability that any two are counted as one is 0.002 %.
    const key = hash("sha256", session, "buffer").readUIntBE(0, 6);
    if (Math.abs(nowMs - this.#forgottenMs) >= FORGET_EVERY_MS) this.#forget(nowMs);
    if (!this.#seen.delete(key) && this.#seen.size >= MAX_SESSIONS) return;
    this.#seen.set(key, nowMs);
  }

  /** Number of viewers; at most 100,000. */
  count(nowMs: number): number {
    this.#forget(nowMs);
    return this.#seen.size;
  }

  #forget(nowMs: number): void {
    // The clock was set back: their requests are in the future, and would count until then.
    if (nowMs < this.#forgottenMs) for (const key of this.#seen.keys()) this.#seen.set(key, nowMs);
    this.#forgottenMs = nowMs;
    for (const [key, at] of this.#seen) {
      if (nowMs - at < WINDOW_MS) return;
      this.#seen.delete(key);
    }
  }
}
