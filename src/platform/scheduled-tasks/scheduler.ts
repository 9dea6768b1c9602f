import type { Logger } from "pino";
import { type Clock, setTimeout } from "#lib/base";

/** Background work: runs on a schedule, never concurrently with itself, and on shutdown if `runOnShutdown`. */
export type ScheduledTask = {
  name: string;
  /** A cron expression with seconds, in UTC. */
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
/** How often tasks that are due are looked for. */
const TICK_MS = 1000;
/** A tick that is later than that missed the times of tasks that run every second. */
const LATE_MS = 2000;
/** A run that the monotonic clock starts so long before its time by the wall clock is the run of that time. */
const SAME_TIME_MS = 2000;

/** When a task runs next: whichever clock reaches its time first. */
type Planned = { task: ScheduledTask; after(wall: number): number; wall: number; monotonic: number };

/**
 * A task that throws is logged and runs again at its next time.
 *
 * The time of each next run is kept by the wall clock and by the monotonic one. When the wall clock is set forward, or the
 * process was suspended, each task that is due runs once for all the times it missed, whose number is not looked at; when it
 * is set back, each task keeps its interval. A run is planned from the current time, so its cost does not depend on the step.
 */
export function startScheduler(
  tasks: readonly ScheduledTask[],
  { log, clock }: { log: Logger; clock: Clock },
): Scheduler {
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
  let stopped = false;
  for (const task of tasks) {
    task.wakes?.(() => {
      if (!stopped) void start(task);
    });
  }
  let planned: Planned[] = [];
  let last = 0;
  const tick = () => {
    const wall = clock.now();
    const monotonic = performance.now();
    const lateMs = monotonic - last - TICK_MS;
    last = monotonic;
    if (lateMs > LATE_MS)
      log.warn(
        { late_ms: Math.round(lateMs) },
        "scheduled tasks missed their time: the process was busy or suspended; each of them runs once",
      );
    for (const one of planned) {
      if (wall < one.wall && monotonic < one.monotonic) continue;
      plan(one, wall, monotonic);
      void start(one.task);
    }
    wait(wall);
  };
  // Shortly after each full second, when most tasks are due.
  const wait = (wall: number) => {
    timer = setTimeout(tick, TICK_MS - (((wall % TICK_MS) + TICK_MS) % TICK_MS));
  };
  // Shortly after the server listens: setting up the schedules takes as long as a part of a start.
  let timer = setTimeout(async () => {
    const { Cron } = await import("croner");
    if (stopped) return;
    const wall = clock.now();
    last = performance.now();
    planned = tasks.map((task) => {
      const cron = new Cron(task.schedule, { utcOffset: 0 });
      const one: Planned = {
        task,
        wall,
        monotonic: last,
        // A schedule without a next time would be one of a single date.
        after: (from) => cron.nextRun(new Date(from))?.getTime() ?? Number.POSITIVE_INFINITY,
      };
      plan(one, wall, last);
      return one;
    });
    wait(wall);
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
      await Promise.all(running.values());
      for (const task of tasks) if (task.runOnShutdown) await start(task);
    },
  };
}

/** Sets the next time of a task that is being planned, or has just run. */
function plan(one: Planned, wall: number, monotonic: number): void {
  const isEarly = one.wall > wall && one.wall - wall <= SAME_TIME_MS;
  one.wall = one.after(isEarly ? one.wall : wall);
  one.monotonic = monotonic + (one.wall - wall);
}
