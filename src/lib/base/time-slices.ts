import { setImmediate as nextIteration } from "node:timers/promises";
import type { Sliced } from "./sliced.ts";

const SLICE_MS = 5;

/** Runs it to the end and yields to the event loop every few milliseconds, so that other requests are answered. */
export async function runInSlices<T>(work: Sliced<T>): Promise<T> {
  let until = performance.now() + SLICE_MS;
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < until) continue;
    await nextIteration();
    until = performance.now() + SLICE_MS;
  }
}
