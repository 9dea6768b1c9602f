import { setImmediate as nextIteration } from "node:timers/promises";
import { expect, test } from "vitest";
import { Waiters } from "#live/playlists/waiters.ts";

const VIEWERS = 2000;
const TIMEOUT_MS = 60_000;
/** What the check of a viewer takes: together as long as dozens of iterations may. */
const CHECK_MS = 0.1;

const hold = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};

/** Viewers who wait for part 1. Counts the iterations of the event loop until each has its part. */
async function waiting() {
  const waiters = new Waiters(VIEWERS);
  let part = 0;
  let isOver = false;
  const check = () => {
    if (part === 0) return null;
    hold(CHECK_MS);
    return { part };
  };
  const all = Promise.all(Array.from({ length: VIEWERS }, () => waiters.wait(check, { timeoutMs: TIMEOUT_MS })));
  const end = all.finally(() => {
    isOver = true;
  });
  return {
    waiters,
    report: (number: number) => {
      part = number;
      waiters.wake();
    },
    async iterations() {
      let count = 0;
      for (; !isOver; count++) await nextIteration();
      return { count, parts: await end };
    },
  };
}

test("thousands of viewers who wait for the same part are answered in many iterations of the event loop", async () => {
  const viewers = await waiting();
  viewers.report(1);
  const { count, parts } = await viewers.iterations();
  expect(parts).toEqual(Array.from({ length: VIEWERS }, () => ({ part: 1 })));
  // 200 ms of work, of which an iteration may take 6 ms, and one check more.
  expect(count).toBeGreaterThan(20);
  expect(viewers.waiters.size).toBe(0);
});

test("what is reported meanwhile is checked too", async () => {
  const waiters = new Waiters(VIEWERS);
  let part = 0;
  const waitFor = (number: number) =>
    waiters.wait(
      () => {
        hold(CHECK_MS);
        return part >= number ? { part: number } : null;
      },
      { timeoutMs: TIMEOUT_MS },
    );
  const first = Array.from({ length: 500 }, () => waitFor(2));
  const others = Array.from({ length: 500 }, () => waitFor(1));
  part = 1;
  waiters.wake();
  await nextIteration();
  part = 2;
  waiters.wake();
  expect(await Promise.all(first)).toHaveLength(500);
  expect(await Promise.all(others)).toHaveLength(500);
});
