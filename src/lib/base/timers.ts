import type { Readable } from "node:stream";
import type { TimerOptions } from "node:timers";
import { setTimeout as wait } from "node:timers/promises";

/** The longest time of a timer, almost 25 days. Node ends a longer one after 1 ms instead, with a warning only. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Milliseconds that a timer may be given: `ms`, at most MAX_TIMER_MS. A caller that waits for longer looks again when the timer
 * ends. Throws RangeError when it is not a number, which Node takes for 1 ms too.
 */
export function timerMs(ms: number): number {
  if (Number.isNaN(ms)) throw new RangeError("A timer needs a number of milliseconds");
  return Math.min(Math.max(ms, 0), MAX_TIMER_MS);
}

/** Called without arguments; it may take one, like the `resolve` of a promise. */
type Work = (value: unknown) => void;

/** Node's `setTimeout`, with a checked time. */
export const setTimeout = (work: Work, ms: number): NodeJS.Timeout =>
  globalThis.setTimeout(work as () => void, timerMs(ms));

/** Node's `setInterval`, with a checked time. */
export const setInterval = (work: Work, ms: number): NodeJS.Timeout =>
  globalThis.setInterval(work as () => void, timerMs(ms));

/** Resolves with `value` after `ms`, as that of node:timers/promises. Rejects with an AbortError when `signal` aborts before. */
export const sleep = <T = void>(ms: number, value?: T, options: TimerOptions = {}): Promise<T> =>
  wait(timerMs(ms), value, options) as Promise<T>;

/** A signal that aborts after `ms`, with a TimeoutError. */
export const abortAfter = (ms: number): AbortSignal => AbortSignal.timeout(timerMs(ms));

type Received = Readable & { readonly bytesRead?: number };

/**
 * Calls `listener` when nothing arrives in `stream`, a socket or what is read from `source`, while its reader waits: it has taken
 * all bytes, and none came for `silentMs` to twice as long. A stream whose reader is slow has bytes that wait, and is not silent.
 */
export function onSilence(stream: Received, silentMs: number, listener: () => void, source: Received = stream): void {
  let seenBytes = -1;
  let wasWaiting = false;
  const timer = setInterval(() => {
    const isWaiting = stream.readableLength === 0;
    if (isWaiting && wasWaiting && source.bytesRead === seenBytes) listener();
    wasWaiting = isWaiting;
    seenBytes = source.bytesRead ?? 0;
  }, silentMs);
  // A stream that is never read does not report its end.
  timer.unref();
  stream.once("close", () => clearInterval(timer));
}
