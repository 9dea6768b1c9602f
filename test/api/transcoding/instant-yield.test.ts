import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import {
  completeEarly,
  earlyResult,
  publishedEarly,
  RENDITIONS,
  requestEarly,
  storeEarly,
} from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { callback } from "#test/support/flow.ts";
import { nextTask } from "#test/support/tasks.ts";

/** A viewer requests a segment in the middle of a chunk that a worker encodes: segments 3 to 7 of all renditions. */

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60 });
  key = await app.key((await app.tenant()).id);
});

const main = async () => (await nextTask(app)).body;
const light = () => nextTask(app, undefined, { lane: "light", worker_id: "w2" });
/** As a worker that has done a part of the chunk reports it. */
const beat = async (contract: any, progress?: number) =>
  (await callback(app, contract, "heartbeat", progress === undefined ? {} : { progress })).body;

async function running() {
  const made = await publishedEarly(app, key);
  // The audio, and the first segments of the low renditions.
  for (let i = 0; i < 2; i++) await completeEarly(app, await main());
  const chunk = await main();
  expect(chunk.task.chunk).toMatchObject({ first_segment: 3, segments: 5, renditions: null });
  return { made, chunk };
}

const isAsked = (contract: any, expected = true) =>
  expect.poll(async () => (await beat(contract)).yield_requested, { interval: 20 }).toBe(expected);
const partial = (chunk: any, count: number) => {
  const written = earlyResult(chunk).written.map((one: any) => ({ ...one, segments: one.segments.slice(0, count) }));
  return { written, partial: true };
};

test("the worker completes it early, the segment is encoded next, and each segment once", async () => {
  const { made, chunk } = await running();
  expect((await beat(chunk, 20)).yield_requested).toBe(false);
  const answer = requestEarly(app, made, "720p/00007.m4s");
  await isAsked(chunk);
  expect((await light()).status).toBe(204);
  expect((await callback(app, chunk, "complete", partial(chunk, 2))).status).toBe(200);
  const urgent = (await light()).body;
  expect(urgent.task.chunk).toMatchObject({ first_segment: 6, segments: 1, renditions: ["720p"], is_urgent: true });
  await storeEarly(app, made.prefix, "720p/00007.m4s");
  expect((await answer).status).toBe(200);
  await completeEarly(app, urgent);
  // A repeat of the completion changes nothing.
  expect((await callback(app, chunk, "complete", partial(chunk, 2))).status).toBe(200);
  const seen = new Map<string, number>();
  const see = ({ task }: any) => {
    const { first_segment: from, segments, renditions } = task.chunk;
    for (const name of renditions ?? RENDITIONS)
      for (let n = from; n < from + (segments ?? 25 - from); n++)
        seen.set(`${name} ${n}`, (seen.get(`${name} ${n}`) ?? 0) + 1);
  };
  see(urgent);
  for (;;) {
    const contract = await main();
    if (contract.task.kind === "images") {
      expect(contract.task.written.map((one: any) => one.segments.length)).toEqual([25, 25, 25, 25]);
      break;
    }
    see(contract);
    await completeEarly(app, contract);
  }
  // All but the first three of the low renditions, and what the worker had done.
  expect(seen.size).toBe(75 - 6 - 6);
  expect([...seen.values()].every((count) => count === 1)).toBe(true);
});

test("a worker that has no segment yet releases it, which counts as no attempt", async () => {
  const { made, chunk } = await running();
  const answer = requestEarly(app, made, "360p/00008.m4s");
  await isAsked(chunk);
  expect((await callback(app, chunk, "release", {})).status).toBe(200);
  const urgent = (await light()).body;
  expect(urgent.task.chunk).toMatchObject({ first_segment: 7, segments: 1, renditions: ["360p"], is_urgent: true });
  await storeEarly(app, made.prefix, "360p/00008.m4s");
  expect((await answer).status).toBe(200);
  const rest = await main();
  expect((await beat(rest)).yield_requested).toBe(false);
});

test("a worker that will reach the segment soon is not asked", async () => {
  const { made, chunk } = await running();
  app.advance(2000);
  // At this speed the last one is there in half a second.
  await beat(chunk, 80);
  expectError(await requestEarly(app, made, "720p/00008.m4s"), 503, "segment_not_ready");
  expect((await beat(chunk)).yield_requested).toBe(false);
  await completeEarly(app, chunk);
});

test("a request that is dropped takes its question back, and a worker that has yielded meanwhile is no fault", async () => {
  const { made, chunk } = await running();
  const drop = new AbortController();
  const answer = requestEarly(app, made, "720p/00007.m4s", { signal: drop.signal }).catch(() => null);
  await isAsked(chunk);
  drop.abort();
  await answer;
  await isAsked(chunk, false);
  expect((await callback(app, chunk, "complete", partial(chunk, 1))).status).toBe(200);
  expect((await light()).status).toBe(204);
  expect((await main()).task.chunk).toMatchObject({ first_segment: 4, segments: 4 });
});

test("a part that is none, or that has another number of segments of each rendition, is not accepted", async () => {
  const { chunk } = await running();
  const uneven = partial(chunk, 2);
  uneven.written[0].segments.pop();
  const { id } = chunk.job;
  expect((await callback(app, chunk, "complete", uneven)).status).toBe(200);
  const { uncuttable } = (await app.as({ admin: app.admin }).getJob(id)).body;
  expect(uncuttable).toBe("inexact");
  expectError(await callback(app, chunk, "complete", partial(chunk, 2)), 409, "stale_lease");
});
