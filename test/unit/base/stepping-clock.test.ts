import { AsyncLocalStorage } from "node:async_hooks";
import { expect, test } from "vitest";
import type { ClockStep } from "#src/lib/base/clock.ts";
import { SteppingClock } from "#src/lib/base/stepping-clock.ts";

const BEGIN = Date.UTC(2026, 0, 15);
const HOUR = 3_600_000;

/** A clock over two sources, with a listener that settles when the test says so. */
function stepped({ listens = true } = {}) {
  let wall = BEGIN;
  let monotonic = 5000;
  const clock = new SteppingClock({ wall: () => wall, monotonic: () => monotonic });
  const steps: ClockStep[] = [];
  const settled = Promise.withResolvers<void>();
  if (listens)
    clock.onStep((step) => {
      steps.push(step);
      return settled.promise;
    });
  return {
    clock,
    steps,
    /** Both clocks continue, with readings of the clock every second. */
    pass(ms: number) {
      for (let left = ms; left > 0; left -= 1000) {
        wall += Math.min(1000, left);
        monotonic += Math.min(1000, left);
        clock.now();
      }
    },
    sleep(ms: number) {
      wall += ms;
      monotonic += ms;
    },
    set: (ms: number) => {
      wall += ms;
    },
    settle: async () => {
      settled.resolve();
      await new Promise((resolve) => setImmediate(resolve));
    },
    wall: () => wall,
  };
}

test("without a step it is the wall clock, and slow corrections of it are followed", () => {
  const { clock, steps, pass, set, wall } = stepped();
  for (let round = 0; round < 100; round++) {
    pass(1000);
    set(round % 2 === 0 ? 400 : -300);
    expect(clock.now()).toBe(wall());
  }
  expect(steps).toEqual([]);
});

test.each([1000, 8 * HOUR, 720 * HOUR, 87_600 * HOUR, -1000, -8 * HOUR, -720 * HOUR, -BEGIN])(
  "a step of %i ms is followed when its listeners have settled",
  async (ms) => {
    const { clock, steps, pass, set, settle, wall } = stepped();
    pass(10_000);
    set(ms);
    // Until then the time before the step continues.
    expect(clock.now()).toBe(wall() - ms);
    pass(3000);
    expect(clock.now()).toBe(wall() - ms);
    expect(steps).toEqual([{ from: BEGIN + 10_000, to: BEGIN + 10_000 + ms, suspendedMs: 0 }]);
    await settle();
    expect(clock.now()).toBe(wall());
    pass(60_000);
    expect(clock.now()).toBe(wall());
    expect(steps.length).toBe(1);
  },
);

test("a second step while the first one settles is the next one", async () => {
  const { clock, steps, pass, set, settle, wall } = stepped();
  pass(10_000);
  set(8 * HOUR);
  clock.now();
  set(-8 * HOUR);
  await settle();
  clock.now();
  await settle();
  expect(clock.now()).toBe(wall());
  expect(steps.map(({ from, to }) => to - from)).toEqual([8 * HOUR, -8 * HOUR]);
});

test("time in which the process did not run is a step", async () => {
  const { clock, steps, pass, sleep, set, settle, wall } = stepped();
  pass(10_000);
  sleep(600_000);
  set(HOUR);
  expect(clock.now()).toBe(BEGIN + 10_000);
  expect(steps).toEqual([{ from: BEGIN + 10_000, to: BEGIN + 610_000 + HOUR, suspendedMs: 600_000 }]);
  await settle();
  expect(clock.now()).toBe(wall());
});

test("without listeners a step is followed at once", () => {
  const { clock, set, sleep, wall } = stepped({ listens: false });
  for (const ms of [8 * HOUR, -16 * HOUR, HOUR]) {
    set(ms);
    expect(clock.now()).toBe(wall());
    sleep(100_000);
    expect(clock.now()).toBe(wall());
  }
});

test("listeners do not run within what noticed the step", async () => {
  const { clock, pass, set, settle } = stepped();
  const transaction = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  clock.onStep(async () => void seen.push(transaction.getStore()));
  pass(1000);
  set(HOUR);
  transaction.run("open", () => clock.now());
  await settle();
  expect(seen).toEqual([undefined]);
});
