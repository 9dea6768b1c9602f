import { setImmediate as turn } from "node:timers/promises";

const HOLD_MS = 4;

/** For long work: `await pace()` between its steps lets everybody else run once it has held the event loop for `holdMs`. */
export function pacer(holdMs = HOLD_MS): () => Promise<void> {
  let from = performance.now();
  return async () => {
    if (performance.now() - from < holdMs) return;
    await turn();
    from = performance.now();
  };
}
