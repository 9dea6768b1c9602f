/** So many are waiting already that another one would not come to its turn in time. */
export class TooBusy extends Error {
  constructor() {
    super("Too much is waiting.");
    this.name = "TooBusy";
  }
}

type Bounds = { atOnce: number; waiting: number; waitMs: number };

/** Runs at most `atOnce` at a time, in the order of asking; throws TooBusy while `waiting` wait, and after `waitMs`. */
export function bounded({ atOnce, waiting, waitMs }: Bounds) {
  const queue = new Set<() => void>();
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running >= atOnce) {
      if (queue.size >= waiting) throw new TooBusy();
      // Whoever ends hands its place on, so that nobody who comes meanwhile takes it.
      await new Promise<void>((resolve, reject) => {
        const begin = () => {
          clearTimeout(timer);
          queue.delete(begin);
          resolve();
        };
        const timer = setTimeout(() => {
          queue.delete(begin);
          reject(new TooBusy());
        }, waitMs);
        queue.add(begin);
      });
    } else running++;
    try {
      return await work();
    } finally {
      const [next] = queue;
      if (next) next();
      else running--;
    }
  };
}
