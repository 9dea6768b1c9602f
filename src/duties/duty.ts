import type { ScheduledTask, TaskOptions } from "node-cron";
import type { Logger } from "pino";

/** Background work: runs on a schedule, never twice at once, and once more when the program stops if it asks to. */
export type Duty = {
  name: string;
  /** A cron expression with seconds. */
  every: string;
  run(): Promise<unknown>;
  /** Where it can be woken before its time. Only a hint: it looks for itself. */
  wakes?(wake: () => void): void;
  /** Writes down what is still in memory. */
  atStop?: boolean;
};

export type Duties = {
  /** Runs a duty now; tests wait for this instead of for the clock. */
  run(name: string): Promise<void>;
  stop(): Promise<void>;
};

const BEGIN_AFTER_MS = 300;

type CronLogger = NonNullable<TaskOptions["logger"]>;

/** The library's own logger prints coloured text. */
const schedulerLog = (log: Logger): CronLogger => {
  const to = (level: "error" | "debug") => (told: string | Error, error?: Error) => {
    const err = error ?? (told instanceof Error ? told : undefined);
    log[level]({ ...(err && { err }) }, told instanceof Error ? "the scheduler failed" : told);
  };
  return {
    info: (text) => log.info(text),
    warn: (text) => log.warn(text),
    error: to("error"),
    debug: to("debug"),
  };
};

/** A duty that throws is logged and runs again at its next time. */
export function startDuties(duties: readonly Duty[], log: Logger): Duties {
  const running = new Map<string, Promise<void>>();
  const start = (duty: Duty) => {
    const current = running.get(duty.name);
    if (current) return current;
    const run = duty
      .run()
      .then(
        () => undefined,
        (error) => log.error({ duty: duty.name, err: error }, "a duty failed; it runs again at its next time"),
      )
      .finally(() => running.delete(duty.name));
    running.set(duty.name, run);
    return run;
  };
  let tasks: ScheduledTask[] = [];
  let stopped = false;
  for (const duty of duties) {
    duty.wakes?.(() => {
      if (!stopped) void start(duty);
    });
  }
  // A moment after the doors open: setting up the schedules takes as long as half of all the rest of a start.
  const timer = setTimeout(async () => {
    const { schedule } = await import("node-cron");
    if (stopped) return;
    const logger = schedulerLog(log);
    tasks = duties.map((duty) => {
      const task = schedule(duty.every, () => start(duty), { name: duty.name, logger });
      // With a listener, the library does not print its own warning, which does not name the task.
      task.on("execution:missed", ({ date }) =>
        log.warn({ duty: duty.name, at: date.toISOString() }, "a scheduled task missed its time: the process was busy"),
      );
      return task;
    });
  }, BEGIN_AFTER_MS);
  return {
    async run(name) {
      const duty = duties.find((each) => each.name === name);
      if (!duty) throw new Error(`There is no duty ${name}`);
      await running.get(name);
      await start(duty);
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await Promise.all(tasks.map((task) => task.destroy()));
      await Promise.all(running.values());
      for (const duty of duties) if (duty.atStop) await start(duty);
    },
  };
}
