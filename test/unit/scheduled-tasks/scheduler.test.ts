import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ScheduledTask, startScheduler } from "#platform/scheduled-tasks/scheduler.ts";
import { amount } from "#test/support/amount.ts";

const SECOND = 1000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const BEGIN = Date.UTC(2026, 0, 15, 10, 3, 20);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"], now: BEGIN });
});
afterEach(() => {
  vi.useRealTimers();
});

const SCHEDULES: [name: string, schedule: string, everyMs: number][] = [
  ["second", "* * * * * *", SECOND],
  ["five", "*/5 * * * * *", 5 * SECOND],
  ["minute", "50 * * * * *", 60 * SECOND],
  ["hour", "0 5 * * * *", HOUR],
  ["quarter", "0 29 */6 * * *", 6 * HOUR],
];

/** A scheduler of tasks that count their runs, with a wall clock that can be stepped. */
async function scheduled() {
  const runs: Record<string, number> = {};
  const lines: string[] = [];
  let offset = 0;
  const tasks: ScheduledTask[] = SCHEDULES.map(([name, schedule]) => {
    runs[name] = 0;
    return {
      name,
      schedule,
      run: async () => {
        runs[name] = (runs[name] ?? 0) + 1;
      },
    };
  });
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const scheduler = startScheduler(tasks, { log, clock: { now: () => Date.now() + offset } });
  await vi.advanceTimersByTimeAsync(10 * SECOND);
  await vi.dynamicImportSettled();
  await vi.advanceTimersByTimeAsync(10 * SECOND);
  return {
    runs,
    lines,
    scheduler,
    step(ms: number) {
      offset += ms;
    },
    /** How often each task runs meanwhile. */
    async within(ms: number) {
      const before = { ...runs };
      await vi.advanceTimersByTimeAsync(ms);
      return Object.fromEntries(Object.entries(runs).map(([name, count]) => [name, count - (before[name] as number)]));
    },
  };
}

test("each task runs at its times", async () => {
  const { within, scheduler, lines } = await scheduled();
  expect(await within(HOUR)).toEqual({ second: 3600, five: 720, minute: 60, hour: 1, quarter: 0 });
  expect(await within(DAY)).toEqual({ second: 86_400, five: 17_280, minute: 1440, hour: 24, quarter: 4 });
  expect(lines).toEqual([]);
  await scheduler.stop();
});

const STEPS: [name: string, ms: number][] = [
  ["+1 s", SECOND],
  ["+1 min", 60 * SECOND],
  ["+8 h", 8 * HOUR],
  ["+30 d", 30 * DAY],
  ["+10 years", 3650 * DAY],
  ["+200 years", 73_000 * DAY],
  ["from 1970", BEGIN],
  ["-1 s", -SECOND],
  ["-1 min", -60 * SECOND],
  ["-8 h", -8 * HOUR],
  ["-30 d", -30 * DAY],
  ["to 1970", -BEGIN],
];

/** Longer than the longest interval. */
const AFTER_STEP_MS = amount(7 * HOUR, DAY);

test.each(STEPS)("after a step of %s each task that is due runs once, and then at its times", async (_, ms) => {
  const { within, step, scheduler, lines } = await scheduled();
  step(ms);
  const first = await within(2 * SECOND);
  for (const [name, , everyMs] of SCHEDULES) {
    // Two ticks pass; what the step has made due runs in the first of them.
    expect(first[name], name).toBeLessThanOrEqual(everyMs === SECOND ? 2 : 1);
    if (ms > everyMs) expect(first[name], name).toBeGreaterThanOrEqual(1);
  }
  const later = await within(AFTER_STEP_MS);
  for (const [name, , everyMs] of SCHEDULES) {
    // No task stops, and none repeats times that it has run at: one more or less by the position of the day.
    expect(Math.abs((later[name] as number) - AFTER_STEP_MS / everyMs), name).toBeLessThanOrEqual(2);
  }
  expect(lines).toEqual([]);
  await scheduler.stop();
});

test("a clock that flaps runs no task more often than the time that passes", async () => {
  const { within, step, scheduler } = await scheduled();
  const total: Record<string, number> = {};
  for (let round = 0; round < 60; round++) {
    step(round % 2 === 0 ? -90 * SECOND : 90 * SECOND);
    for (const [name, count] of Object.entries(await within(10 * SECOND))) total[name] = (total[name] ?? 0) + count;
  }
  expect(total.second).toBeLessThanOrEqual(601);
  // Each step forward makes due what the minutes between have.
  expect(total.minute).toBeLessThanOrEqual(10 + 60);
  expect(total.quarter).toBeLessThanOrEqual(1);
  await scheduler.stop();
});
