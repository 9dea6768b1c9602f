import { showProgress } from "../progress.ts";

const WINDOW_MS = 10_000;
const TICK_MS = 500;

/** How far all files together are, how fast, and how long it will take; while one is encoded, how far that is. */
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
    /** Negative: what was sent was lost on its way. */
    sent: (bytes: number) => {
      done += bytes;
    },
    /** One at a time. */
    encode(name: string) {
      const own = { name, seconds: null as number | null, fraction: 0, since: Date.now() };
      encoding = own;
      return {
        /** How long it lasts. */
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

/** Nothing of what takes no time. */
function showLines() {
  let toldAt = Date.now();
  return {
    update(fraction: number, stage = "", title = "Uploading") {
      if (Date.now() - toldAt < LINE_EVERY_MS) return;
      toldAt = Date.now();
      process.stderr.write(`${title}: ${Math.round(fraction * 100)} % ${stage}\n`);
    },
    done() {},
  };
}

export function amount(bytes: number): string {
  const units = ["B", "kB", "MB", "GB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
