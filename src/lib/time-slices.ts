import { setImmediate as turn } from "node:timers/promises";

/** Work over something large that can pause at each `yield`. */
export type Sliced<T> = Generator<void, T>;

const SLICE_MS = 5;

/** To its end, with a turn of the event loop after each few milliseconds, so that other requests are answered. */
export async function runInSlices<T>(work: Sliced<T>): Promise<T> {
  let until = performance.now() + SLICE_MS;
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < until) continue;
    await turn();
    until = performance.now() + SLICE_MS;
  }
}

/** To its end in one go: for what is known to be small. */
export function runToEnd<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
