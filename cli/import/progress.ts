import { setInterval } from "#lib/base";
import { showProgress } from "../progress.ts";
import { amount, duration } from "../units.ts";

const WINDOW_MS = 10_000;
const TICK_MS = 500;

export type ImportProgress = {
  /** Bytes that were downloaded or uploaded; negative for those that were lost. */
  moved(bytes: number): void;
  /** A video is imported, skipped or has failed. */
  finished(): void;
  /** Videos that are finished, and bytes that were moved. */
  counts(): { done: number; bytes: number };
  stop(isWhole: boolean): void;
};

/**
 * Shows how many of `total` videos are done, the rate in bytes, and the remaining time by the videos so far. `waiting`: how
 * many are being encoded by the server.
 */
export function importProgress(total: number, waiting: () => number): ImportProgress {
  const progress = showProgress("Importing", { silentMs: 1000 });
  const began = Date.now();
  let done = 0;
  let bytes = 0;
  let samples: [at: number, bytes: number][] = [];
  const timer = setInterval(() => {
    const now = Date.now();
    samples = [...samples.filter(([at]) => now - at < WINDOW_MS), [now, bytes]];
    const [at, before] = samples[0] as [number, number];
    const rate = now > at ? Math.max(0, bytes - before) / ((now - at) / 1000) : 0;
    const left = done > 0 ? `, ${duration((((now - began) / done) * (total - done)) / 1000)} left` : "";
    const encoding = waiting() > 0 ? `, ${waiting()} being encoded` : "";
    const stage = `${done} of ${total} videos${encoding}, ${amount(rate)}/s${done < total ? left : ""}`;
    progress.update(total === 0 ? 0 : Math.min(1, done / total), stage);
  }, TICK_MS);
  return {
    moved: (count) => {
      bytes += count;
    },
    finished: () => {
      done++;
    },
    counts: () => ({ done, bytes }),
    stop(isWhole) {
      clearInterval(timer);
      progress.done(isWhole);
    },
  };
}
