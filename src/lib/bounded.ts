/** So many are waiting already that another one would not come to its turn in time. */
export class TooBusy extends Error {
  constructor() {
    super("Too much is waiting.");
    this.name = "TooBusy";
  }
}

/** Runs at most `atOnce` at a time, in the order of asking; throws TooBusy while `waiting` wait. */
export function bounded({ atOnce, waiting }: { atOnce: number; waiting: number }) {
  const queue: (() => void)[] = [];
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= atOnce) {
      if (queue.length >= waiting) throw new TooBusy();
      // Whoever ends hands its place on, so that nobody who comes meanwhile takes it.
      await new Promise<void>((resolve) => queue.push(resolve));
    } else running++;
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next) next();
      else running--;
    }
  };
}
