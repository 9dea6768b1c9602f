import { setImmediate as turn } from "node:timers/promises";

const HOLD_MS = 4;

/**
 * Lets everybody else run. Two turns of the event loop: what comes in during the first is answered at its end, behind
 * whoever waits for that turn alone.
 */
export async function giveWay(): Promise<void> {
  await turn();
  await turn();
}

/** For long work: `await pace()` between its steps lets everybody else run once it has held the event loop for `holdMs`. */
export function pacer(holdMs = HOLD_MS): () => Promise<void> {
  let from = performance.now();
  return async () => {
    if (performance.now() - from < holdMs) return;
    await giveWay();
    from = performance.now();
  };
}
