/** Work over a large input that can pause at each `yield`. */
export type Sliced<T> = Generator<void, T>;

/** Runs it to the end without a pause, for inputs that are known to be small. */
export function runToEnd<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}
