import { HttpError, pacer, setTimeout } from "#lib/base";

type WaitOptions<T> = {
  timeoutMs: number;
  atDeadline?: (() => T | null) | undefined;
  signal?: AbortSignal | undefined;
};
type Waiter = { check: () => boolean; fail: (error: unknown) => void };

/** In target durations, draft-pantos-hls-rfc8216bis, 6.2.5.2: when a blocking request ends with 503. */
export const WAIT = 3;
/**
 * In target durations: when a blocking request ends with the playlist as it is, while the publisher is disconnected. hls.js
 * ends a blocking request after 0.8 target durations as a load error, of which it accepts a few. It takes an unchanged
 * playlist for as long as necessary, and asks again.
 */
export const INTERRUPTED_WAIT = 0.5;

/** Requests that are checked at once. */
const CHECKS_AT_ONCE = 64;

/**
 * Requests that are held until the timeline has what they ask for. Each has one timer, for its deadline; `wake` checks
 * all of them, in linear time, and each takes its share of the event loop: thousands of viewers wait for the same part.
 */
export class Waiters {
  readonly #waiting = new Set<Waiter>();
  readonly #max: number;
  #isWaking = false;
  /** The timeline has changed since all were checked. */
  #mustCheck = false;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves with the first result of `check` that is not null, and rejects with what `check` throws, with the reason of
   * `signal`, or with an HttpError of status 503: `segment_not_ready` after `timeoutMs` unless `atDeadline` has a result then,
   * `busy` when too many wait.
   */
  async wait<T extends object>(check: () => T | null, { timeoutMs, atDeadline, signal }: WaitOptions<T>): Promise<T> {
    signal?.throwIfAborted();
    const now = check();
    if (now) return now;
    if (this.#waiting.size >= this.#max)
      throw new HttpError(503, "busy", "Too many requests wait for this live stream; try again.", RETRY);
    return new Promise<T>((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        this.#waiting.delete(waiter);
      };
      const waiter: Waiter = {
        check: () => {
          const result = check();
          if (!result) return false;
          end();
          resolve(result);
          return true;
        },
        fail: (error) => {
          end();
          reject(error);
        },
      };
      const onAbort = () => waiter.fail(signal?.reason);
      const timer = setTimeout(() => {
        const late = atDeadline?.();
        if (!late) return waiter.fail(timedOut());
        end();
        resolve(late);
      }, timeoutMs);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(waiter);
    });
  }

  /**
   * Checks all once the current callback is done. The last part of a segment and the end of that segment are often
   * reported together: a playlist between the two would hint at a part that never comes.
   */
  wake(): void {
    this.#mustCheck = true;
    if (this.#isWaking || this.#waiting.size === 0) return;
    this.#isWaking = true;
    queueMicrotask(() => void this.#checkAll());
  }

  async #checkAll(): Promise<void> {
    const pace = pacer();
    while (this.#mustCheck) {
      this.#mustCheck = false;
      let count = 0;
      for (const waiter of this.#waiting) {
        try {
          waiter.check();
        } catch (error) {
          waiter.fail(error);
        }
        if (++count % CHECKS_AT_ONCE === 0) await pace();
      }
    }
    this.#isWaking = false;
  }
}

const timedOut = () =>
  new HttpError(503, "segment_not_ready", "The live stream has made no progress; try again.", RETRY);
const RETRY = { headers: { "retry-after": "1" } };
