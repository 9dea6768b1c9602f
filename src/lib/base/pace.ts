import { setImmediate as nextIteration } from "node:timers/promises";
import { step } from "./loop-share.ts";
import { recentRequests } from "./recent-requests.ts";
import { sleep } from "./timers.ts";

/** Limit of one slice of background work, and so of the delay of a request that arrives during it. */
const BACKGROUND_HOLD_MS = 2;
/** Background work continues after this time, even under constant load. */
const MAX_YIELD_MS = 50;

/**
 * Yields to the event loop for two iterations: what arrives during the first is handled at its end, after the callbacks
 * that wait for a single iteration.
 */
export async function yieldToEventLoop(): Promise<void> {
  await nextIteration();
  await nextIteration();
}

/**
 * Yields to the event loop, then waits until recent requests are answered: a request takes several iterations of the event
 * loop and would be delayed by a slice of the work in each. Do not use it in a short handler, whose own request is one of
 * them, or inside a transaction, which the requests may be waiting for.
 */
export async function yieldToRequests(): Promise<void> {
  await yieldToEventLoop();
  for (const until = performance.now() + MAX_YIELD_MS; recentRequests.some() && performance.now() < until; )
    await sleep(1);
}

/**
 * For long work of a request: `await pace()` between its steps lets everybody else run once the event loop is held for too
 * long, by whomever.
 */
export const pacer = () => async () => await step();

/** For work that is not latency-sensitive, such as imports and exports: requests take precedence. */
export function backgroundPacer(): () => Promise<void> {
  let from = performance.now();
  return async () => {
    if (performance.now() - from < BACKGROUND_HOLD_MS) return;
    await yieldToRequests();
    from = performance.now();
  };
}
