import { setImmediate as nextIteration } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { arrival, step } from "#src/lib/base/loop-share.ts";
import { recentRequests } from "#src/lib/base/recent-requests.ts";

const hold = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};

/** What ran in each iteration of the event loop until `isOver`. */
async function iterations(ran: string[], isOver: () => boolean): Promise<string[][]> {
  const all: string[][] = [];
  while (!isOver()) {
    await nextIteration();
    all.push(ran.splice(0));
  }
  return all;
}

/** Starts `count` of them, each of which holds the loop for `ms`. */
function start(
  ran: string[],
  wait: () => Promise<void> | undefined,
  name: string,
  count: number,
  ms: number,
): Promise<void> {
  const each = async (index: number) => {
    const waiting = wait();
    if (waiting) await waiting;
    hold(ms);
    ran.push(`${name}${index}`);
  };
  return Promise.all(Array.from({ length: count }, (_, index) => each(index))).then(() => {});
}

describe("a share of the event loop", () => {
  test("requests that arrive together begin in several iterations, in order", async () => {
    const ran: string[] = [];
    let isOver = false;
    const started = start(ran, arrival, "request ", 40, 1).then(() => {
      isOver = true;
    });
    const all = await iterations(ran, () => isOver);
    await started;
    expect(all.flat()).toEqual(Array.from({ length: 40 }, (_, index) => `request ${index}`));
    // Each takes a millisecond or more, so at most four fit in one.
    expect(Math.max(...all.map(({ length }) => length))).toBeLessThanOrEqual(5);
  });

  test("steps continue next to requests that take all time, and requests next to such steps", async () => {
    const ran: string[] = [];
    let isOver = false;
    const started = Promise.all([start(ran, arrival, "request ", 60, 2), start(ran, step, "step ", 10, 2)]).then(() => {
      isOver = true;
    });
    const all = (await iterations(ran, () => isOver)).flat();
    await started;
    expect(all).toHaveLength(70);
    expect(all.findLastIndex((one) => one.startsWith("step"))).toBeLessThan(all.indexOf("request 59"));
    expect(all.indexOf("request 5")).toBeLessThan(all.indexOf("step 9"));
  });

  test("steps take a smaller share of each iteration while a recent request is in progress", async () => {
    /** How many iterations 60 steps take. */
    const iterationsOf = async (notice: () => void) => {
      let isOver = false;
      const each = async () => {
        notice();
        const waiting = step();
        if (waiting) await waiting;
        hold(0.7);
      };
      const started = Promise.all(Array.from({ length: 60 }, each)).then(() => {
        isOver = true;
      });
      let count = 0;
      for (; !isOver; count++) {
        notice();
        await nextIteration();
      }
      await started;
      return count;
    };
    // A busy machine lengthens steps, so that fewer fit in an iteration: the fewest iterations of several rounds are compared.
    let alone = Number.POSITIVE_INFINITY;
    let nextToRequests = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 40 && (round < 3 || nextToRequests / alone <= 1.5); round++) {
      await expect.poll(() => recentRequests.some(), { interval: 10 }).toBe(false);
      alone = Math.min(alone, await iterationsOf(() => {}));
      nextToRequests = Math.min(nextToRequests, await iterationsOf(() => void recentRequests.begin()));
    }
    expect(nextToRequests / alone).toBeGreaterThan(1.5);
  });

  test("who is alone does not wait", async () => {
    await nextIteration();
    await nextIteration();
    expect(arrival()).toBeUndefined();
    await nextIteration();
    await nextIteration();
    expect(step()).toBeUndefined();
  });
});
