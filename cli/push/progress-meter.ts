import { setInterval } from "#lib/base";
import { showProgress } from "../progress.ts";
import { amount, duration } from "../units.ts";

const WINDOW_MS = 10_000;
const TICK_MS = 500;

/** Shows the overall progress, rate and remaining time, and the progress of the current encode. */
export function meter() {
  const progress = process.stderr.isTTY ? showProgress("Uploading") : showLines();
  let total = 0;
  let done = 0;
  let samples: [at: number, bytes: number][] = [];
  let encoding: { name: string; seconds: number | null; fraction: number; since: number } | null = null;
  const timer = setInterval(() => {
    const now = Date.now();
    samples = [...samples.filter(([at]) => now - at < WINDOW_MS), [now, done]];
    if (encoding) {
      const { name, fraction } = encoding;
      const sending = done < total ? `; uploading ${about(now)}` : "";
      progress.update(fraction, speed(encoding, now) + sending, `Encoding ${name}`);
    } else if (total > 0) progress.update(Math.min(1, done / total), about(now));
  }, TICK_MS);

  function about(now: number): string {
    const [first] = samples;
    if (!first || now - first[0] < TICK_MS) return "";
    const rate = Math.max(0, done - first[1]) / ((now - first[0]) / 1000);
    const left = rate > 0 ? `, ${duration((total - done) / rate)} left` : "";
    return `${amount(rate)}/s${left}`;
  }

  return {
    expect: (bytes: number) => {
      total += bytes;
    },
    /** Negative: bytes that were sent have been lost. */
    sent: (bytes: number) => {
      done += bytes;
    },
    /** One at a time. */
    encode(name: string) {
      const own = { name, seconds: null as number | null, fraction: 0, since: Date.now() };
      encoding = own;
      return {
        /** Its duration. */
        seconds: (length: number | null) => {
          own.seconds = length;
        },
        fraction: (reached: number) => {
          own.fraction = reached;
        },
        end: () => {
          if (encoding === own) encoding = null;
        },
      };
    },
    /** `whole` unless something failed. */
    stop(whole: boolean) {
      clearInterval(timer);
      if (process.stderr.isTTY) progress.done(whole);
    },
  };
}
export type Meter = ReturnType<typeof meter>;

function speed({ fraction, seconds, since }: { fraction: number; seconds: number | null; since: number }, now: number) {
  const spent = (now - since) / 1000;
  if (fraction <= 0 || spent < 1) return "";
  const rate = seconds === null ? "" : `${((fraction * seconds) / spent).toFixed(1)} × real time, `;
  return `${rate}${duration((spent / fraction) * (1 - fraction))} left`;
}

const LINE_EVERY_MS = 3000;

/** Prints nothing for work that takes almost no time. */
function showLines() {
  let reportedAt = Date.now();
  return {
    update(fraction: number, stage = "", title = "Uploading") {
      if (Date.now() - reportedAt < LINE_EVERY_MS) return;
      reportedAt = Date.now();
      process.stderr.write(`${title}: ${Math.round(fraction * 100)} % ${stage}\n`);
    },
    done() {},
  };
}
