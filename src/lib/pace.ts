import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { recentRequests } from "./recent-requests.ts";

const HOLD_MS = 4;
/** Of background work: a request that arrives meanwhile waits for so long at most. */
const BACKGROUND_HOLD_MS = 2;
/** Background work goes on after this time, however many requests there are. */
const PATIENCE_MS = 50;

/**
 * Lets everybody else run. Two turns of the event loop: what comes in during the first is answered at its end, behind
 * whoever waits for that turn alone.
 */
export async function yieldToEventLoop(): Promise<void> {
  await turn();
  await turn();
}

/**
 * Lets everybody else run, and waits until the requests that have just arrived are answered: one takes several turns of
 * the event loop, and would wait for a piece of the work at each. Not for a handler that makes a quick answer, whose
 * own request is one of them, and not within a transaction, which they may be waiting for.
 */
export async function yieldToRequests(): Promise<void> {
  await yieldToEventLoop();
  for (const until = performance.now() + PATIENCE_MS; recentRequests.some() && performance.now() < until; )
    await sleep(1);
}

/** For long work: `await pace()` between its steps lets everybody else run once it has held the event loop for `holdMs`. */
export function pacer(holdMs = HOLD_MS, yieldNow: () => Promise<void> = yieldToEventLoop): () => Promise<void> {
  let from = performance.now();
  return async () => {
    if (performance.now() - from < holdMs) return;
    await yieldNow();
    from = performance.now();
  };
}

/** `pacer` for work that nobody waits for by the millisecond, such as an import or an export: requests come first. */
export const backgroundPacer = () => pacer(BACKGROUND_HOLD_MS, yieldToRequests);
