import type { ScheduledTask as CronTask, TaskOptions } from "node-cron";
import type { Logger } from "pino";
import { setTimeout } from "../lib/timers.ts";

/** Background work: runs on a schedule, never concurrently with itself, and on shutdown if `runOnShutdown`. */
export type ScheduledTask = {
  name: string;
  /** A cron expression with seconds. */
  schedule: string;
  run(): Promise<unknown>;
  /** Registers a callback that starts the task early. A hint only: the task checks for work itself. */
  wakes?(wake: () => void): void;
  /** Flushes what is still in memory. */
  runOnShutdown?: boolean;
};

export type Scheduler = {
  /** Runs a task now; tests use this instead of waiting for the schedule. */
  run(name: string): Promise<void>;
  stop(): Promise<void>;
};

const BEGIN_AFTER_MS = 300;

type CronLogger = NonNullable<TaskOptions["logger"]>;

/** The library's own logger prints colored text. */
const schedulerLog = (log: Logger): CronLogger => {
  const to = (level: "error" | "debug") => (message: string | Error, error?: Error) => {
    const err = error ?? (message instanceof Error ? message : undefined);
    log[level]({ ...(err && { err }) }, message instanceof Error ? "the scheduler failed" : message);
  };
  return {
    info: (text) => log.info(text),
    warn: (text) => log.warn(text),
    error: to("error"),
    debug: to("debug"),
  };
};

/** A task that throws is logged and runs again at its next time. */
export function startScheduler(tasks: readonly ScheduledTask[], log: Logger): Scheduler {
  const running = new Map<string, Promise<void>>();
  const start = (task: ScheduledTask) => {
    const current = running.get(task.name);
    if (current) return current;
    const run = task
      .run()
      .then(
        () => undefined,
        (error) =>
          log.error({ task: task.name, err: error }, "a task failed; it runs again at its next scheduled time"),
      )
      .finally(() => running.delete(task.name));
    running.set(task.name, run);
    return run;
  };
  let cronTasks: CronTask[] = [];
  let stopped = false;
  for (const task of tasks) {
    task.wakes?.(() => {
      if (!stopped) void start(task);
    });
  }
  // Shortly after the server listens: setting up the schedules takes half as long as the rest of a start.
  const timer = setTimeout(async () => {
    const { schedule } = await import("node-cron");
    if (stopped) return;
    const logger = schedulerLog(log);
    cronTasks = tasks.map((task) => {
      const cronTask = schedule(task.schedule, () => start(task), { name: task.name, logger });
      // With a listener, the library does not print its own warning, which does not name the task.
      cronTask.on("execution:missed", ({ date }) =>
        log.warn({ task: task.name, at: date.toISOString() }, "a scheduled task missed its time: the process was busy"),
      );
      return cronTask;
    });
  }, BEGIN_AFTER_MS);
  return {
    async run(name) {
      const task = tasks.find((each) => each.name === name);
      if (!task) throw new Error(`There is no task ${name}`);
      await running.get(name);
      await start(task);
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await Promise.all(cronTasks.map((task) => task.destroy()));
      await Promise.all(running.values());
      for (const task of tasks) if (task.runOnShutdown) await start(task);
    },
  };
}
