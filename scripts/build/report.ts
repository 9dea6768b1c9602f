/**
 * Progress of a build: one line for each finished step. On a terminal the last line shows the running ones and the remaining
 * time; elsewhere a long one writes a line every ten seconds.
 */
type Step = { seconds: number; startedAt: number | null; isDone: boolean };

const steps = new Map<string, Step>();
/** What a running step is at, such as "compiling 40 %". */
let detail = "";

/** Expected seconds of the steps to come, by title; a step that was not announced counts only while it runs. */
export function planSteps(expected: Record<string, number>): void {
  for (const [title, seconds] of Object.entries(expected))
    steps.set(title, { seconds, startedAt: null, isDone: false });
}

/** Runs `work` as a step; its line has the time that it took. */
export async function step<T>(title: string, work: () => Promise<T> | T): Promise<T> {
  const started = performance.now();
  steps.set(title, { seconds: steps.get(title)?.seconds ?? 0, startedAt: started, isDone: false });
  const timer = process.stdout.isTTY ? setInterval(draw, 500) : undefined;
  if (timer) draw();
  try {
    return await work();
  } finally {
    clearInterval(timer);
    steps.set(title, { seconds: 0, startedAt: null, isDone: true });
    detail = "";
    say(`${title} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  }
}

/** Prints a line above the one that shows the progress. */
export function say(line: string): void {
  if (process.stdout.isTTY) process.stdout.write("\r\x1b[K");
  console.log(line);
  if (process.stdout.isTTY && [...steps.values()].some(({ startedAt }) => startedAt !== null)) draw();
}

function draw(): void {
  const now = performance.now();
  const all = [...steps];
  const running = all.filter(([, { startedAt }]) => startedAt !== null).map(([title]) => title);
  const done = all.filter(([, { isDone }]) => isDone).length;
  const left = all.reduce((sum, [, { seconds, startedAt, isDone }]) => {
    if (isDone) return sum;
    return sum + Math.max(seconds > 0 ? 1 : 0, seconds - (startedAt === null ? 0 : (now - startedAt) / 1000));
  }, 0);
  const parts = [`[${done + 1}/${all.length}] ${running.join(", ")}`, detail, left > 0 ? remaining(left) : ""];
  const line = parts.filter(Boolean).join(" · ");
  process.stdout.write(`\r${line.slice(0, (process.stdout.columns ?? 80) - 1)}\x1b[K`);
}

const remaining = (seconds: number) =>
  seconds < 90 ? `about ${Math.ceil(seconds)} s left` : `about ${Math.ceil(seconds / 60)} minutes left`;

/** The progress of one step, in percent of `total` calls of `advance`. */
export function bar(title: string, total: number): { advance(): void; end(): void } {
  let done = 0;
  let shownAt = performance.now();
  return {
    advance() {
      done += 1;
      const text = `${title} ${Math.floor((100 * Math.min(done, total)) / Math.max(1, total))} %`;
      if (process.stdout.isTTY) detail = text;
      else if (performance.now() - shownAt > 10_000) {
        shownAt = performance.now();
        console.log(text);
      }
    },
    end() {
      detail = "";
    },
  };
}
