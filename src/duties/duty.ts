import { type ScheduledTask, schedule } from "node-cron";
import type { Logger } from "pino";

/** Background work: runs on a schedule, never twice at once, and once more when the program stops if it asks to. */
export type Duty = {
  name: string;
  /** A cron expression with seconds. */
  every: string;
  run(): Promise<unknown>;
  /** Writes down what is still in memory. */
  atStop?: boolean;
};

export type Duties = {
  /** Runs a duty now; tests wait for this instead of for the clock. */
  run(name: string): Promise<void>;
  stop(): Promise<void>;
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
  const tasks: ScheduledTask[] = duties.map((duty) => schedule(duty.every, () => start(duty)));
  return {
    async run(name) {
      const duty = duties.find((each) => each.name === name);
      if (!duty) throw new Error(`There is no duty ${name}`);
      await running.get(name);
      await start(duty);
    },
    async stop() {
      await Promise.all(tasks.map((task) => task.destroy()));
      await Promise.all(running.values());
      for (const duty of duties) if (duty.atStop) await start(duty);
    },
  };
}
