import { Presets, SingleBar } from "cli-progress";

export type Progress = {
  update(fraction: number, stage?: string, title?: string): void;
  /** `whole` is false for a failure. */
  done(whole?: boolean): void;
};

const LINE_EVERY_MS = 3000;

/**
 * A progress bar on a terminal, else a line at intervals, none in the first `silentMs`. On stderr, because stdout is
 * for results.
 */
export function showProgress(title: string, { silentMs = 0 }: { silentMs?: number } = {}): Progress {
  if (process.stderr.isTTY) {
    const bar = new SingleBar(
      {
        format: `{title} {bar} {percentage} % {stage}`,
        stream: process.stderr,
        hideCursor: true,
        clearOnComplete: false,
      },
      Presets.shades_classic,
    );
    bar.start(100, 0, { title, stage: "" });
    return {
      update: (fraction, stage = "", now = title) => bar.update(Math.round(fraction * 100), { title: now, stage }),
      done(whole = true) {
        if (whole) bar.update(100, { title, stage: "" });
        bar.stop();
      },
    };
  }
  const began = Date.now();
  let reportedAt = 0;
  return {
    update(fraction, stage = "") {
      if (Date.now() - began < silentMs || Date.now() - reportedAt < LINE_EVERY_MS) return;
      reportedAt = Date.now();
      process.stderr.write(`${title}: ${Math.round(fraction * 100)} % ${stage}\n`);
    },
    done(whole = true) {
      // A failure prints its own message.
      if (whole && reportedAt > 0) process.stderr.write(`${title}: done\n`);
    },
  };
}
