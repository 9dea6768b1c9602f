import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { backgroundPacer, yieldToRequests } from "#src/lib/base/pace.ts";
import { recentRequests } from "#src/lib/base/recent-requests.ts";

/** Duration of `work` in milliseconds. */
async function timed(work: () => Promise<void>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
const hold = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};

test("background work waits until a request that has just arrived is answered", async () => {
  const request = recentRequests.begin();
  let isAnswered = false;
  let wentOn: boolean | undefined;
  const work = yieldToRequests().then(() => {
    wentOn = isAnswered;
  });
  // Several iterations of the event loop, as a request takes.
  for (let n = 0; n < 20; n++) await turn();
  isAnswered = true;
  recentRequests.end(request);
  await work;
  expect(wentOn).toBe(true);
});

test("it waits for 50 ms, not for the end of the request, and not at all for a request that is older", async () => {
  const slow = recentRequests.begin();
  const first = await timed(yieldToRequests);
  expect(first).toBeGreaterThan(10);
  // The request does not end before that.
  expect(first).toBeLessThan(30_000);
  hold(60);
  expect(recentRequests.some()).toBe(false);
  recentRequests.end(slow);
});

test("a request that ends after its time does not end another's", () => {
  const old = recentRequests.begin();
  hold(60);
  const young = recentRequests.begin();
  recentRequests.end(old);
  expect(recentRequests.some()).toBe(true);
  recentRequests.end(young);
  expect(recentRequests.some()).toBe(false);
});

test("a background pacer lets others run once it has held the event loop for 2 ms", async () => {
  const pace = backgroundPacer();
  let turns = 0;
  const count = setInterval(() => turns++, 0);
  for (let n = 0; n < 10; n++) {
    hold(3);
    await pace();
  }
  clearInterval(count);
  expect(turns).toBeGreaterThan(5);
});
