import { eq } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { transcodingTasks } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import {
  completeEarly,
  EARLY_PLAN,
  type Early,
  earlyResult,
  publishedEarly,
  requestEarly,
  storeEarly,
} from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { callback } from "#test/support/flow.ts";
import { finish, nextTask } from "#test/support/tasks.ts";

/** The audio of a long video that plays before it is encoded: in parts, and from where a viewer is. */
let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60 });
  app.stopClock();
  key = await app.key((await app.tenant()).id);
});

/** Twenty minutes, whose audio can be cut at every second segment. */
const SEGMENTS = 300;
const { plan, early } = EARLY_PLAN;
const longPlan = (audio_step: number | null = 2) => ({
  plan,
  duration_seconds: 4 * SEGMENTS,
  early: { ...early, segments: SEGMENTS, audio_step },
});

const light = async () => (await nextTask(app, undefined, { lane: "light" })).body;
const complete = (contract: any) => completeEarly(app, contract, SEGMENTS);
const nameOf = (number: number) => `audio/${String(number + 1).padStart(5, "0")}.m4s`;
const rangeOf = ({ task: { chunk } }: any): [number, number | null] => [chunk.first_segment, chunk.segments];
const job = async () => (await app.as({ admin: app.admin }).getJob(1)).body;

/** A published asset; its urgent tasks are complete, of the audio the first part. */
async function published(): Promise<Early> {
  const made = await publishedEarly(app, key, { plan: longPlan() });
  const first = await light();
  expect([first.task.kind, ...rangeOf(first), first.task.chunk.is_urgent]).toEqual(["audio", 0, 2, true]);
  await complete(first);
  const lead = await light();
  expect(lead.task.kind).toBe("chunk");
  await complete(lead);
  return made;
}

/** Completes the light tasks that are queued; their ranges in order. */
async function restOfAudio(): Promise<[number, number | null][]> {
  const ranges: [number, number | null][] = [];
  for (let contract = await light(); contract; contract = await light()) {
    ranges.push(rangeOf(contract));
    await complete(contract);
  }
  return ranges;
}

/** The part that begins with a segment, when it is the next one. */
const untilUrgent = (from: number): Promise<any> =>
  until("the part is urgent", async () => {
    const parts = await app.opened.app.db
      .select()
      .from(transcodingTasks)
      .where(eq(transcodingTasks.firstSegment, from))
      .all();
    return parts.some(({ kind, serviceClass }) => kind === "audio" && serviceClass !== "normal") && (await light());
  });

test("the audio is encoded in parts of a minute in the order of time, each once", async () => {
  await published();
  const parts = Array.from({ length: 16 }, (_, index) => [16 * (index + 1), 16]);
  expect(await restOfAudio()).toEqual([[2, 14], ...parts, [272, null]]);
  for (;;) {
    const { body: contract } = await nextTask(app);
    if (contract.task.kind === "images") {
      const audio = contract.task.written.find(({ name }: { name: string }) => name === "audio");
      expect(audio.segments).toHaveLength(SEGMENTS);
      await finish(app, contract);
      break;
    }
    expect(contract.task.kind).toBe("chunk");
    await complete(contract);
  }
  expect(await job()).toMatchObject({ status: "completed", attempt: 1 });
});

test("a requested segment of the audio is encoded next, with those after it, and what is before it later", async () => {
  const made = await published();
  const before = (await job()).tasks.total;
  const answer = requestEarly(app, made, nameOf(217));
  await until("the part is divided", async () => (await job()).tasks.total > before);
  const urgent = await light();
  expect([urgent.task.kind, ...rangeOf(urgent)]).toEqual(["audio", 216, 4]);
  // It waits for no other task, and nothing is divided again.
  const others = [218, 223].map((number) => requestEarly(app, made, nameOf(number)));
  for (const number of [217, 218, 223]) await storeEarly(app, made.prefix, nameOf(number));
  for (const one of [await answer, ...(await Promise.all(others))]) expect(one.status).toBe(200);
  expect((await job()).tasks.total).toBe(before + 2);
  await complete(urgent);
  const ranges = await restOfAudio();
  expect(ranges[0]).toEqual([220, 4]);
  expect(ranges).toContainEqual([208, 8]);
  const starts = [220, 2, ...Array.from({ length: 17 }, (_, index) => 16 * (index + 1))];
  expect(ranges.map(([from]) => from)).toEqual(starts);
});

test("what follows a requested segment in its part is not divided when it is short, and neither is the end of the source", async () => {
  const made = await published();
  const before = (await job()).tasks.total;
  for (const [number, range] of [
    [252, [252, 4]],
    [299, [298, null]],
  ] as const) {
    const answer = requestEarly(app, made, nameOf(number));
    const contract = await untilUrgent(range[0]);
    expect(rangeOf(contract)).toEqual(range);
    await storeEarly(app, made.prefix, nameOf(number));
    expect((await answer).status).toBe(200);
    await complete(contract);
  }
  expect((await job()).tasks.total).toBe(before + 2);
});

test("the urgent lane receives only what a viewer waits for, also when it waits for a task", async () => {
  const made = await published();
  const urgent = (fields = {}) => nextTask(app, undefined, { lane: "urgent", ...fields });
  expect((await urgent()).status).toBe(204);
  const waiting = urgent({ wait_seconds: 20 });
  const answer = requestEarly(app, made, nameOf(217));
  const { body } = await waiting;
  expect([body.lane, body.task.kind, ...rangeOf(body)]).toEqual(["urgent", "audio", 216, 4]);
  await storeEarly(app, made.prefix, nameOf(217));
  expect((await answer).status).toBe(200);
  await complete(body);
  // The rest of the requested minute is for other lanes, until it is requested too.
  expect((await urgent()).status).toBe(204);
  const later = requestEarly(app, made, nameOf(222));
  const rest = await until("it is requested", async () => (await urgent()).body);
  expect(rangeOf(rest)).toEqual([220, 4]);
  await storeEarly(app, made.prefix, nameOf(222));
  expect((await later).status).toBe(200);
  await complete(rest);
  expect(rangeOf(await light())).toEqual([2, 14]);
});

test("a requested segment of the video makes the audio of its time urgent too", async () => {
  const made = await published();
  const video = "360p/00218.m4s";
  const answer = requestEarly(app, made, video);
  const urgent = () => nextTask(app, undefined, { lane: "urgent" });
  const claimed = [await until("it is requested", async () => (await urgent()).body), (await urgent()).body];
  expect(claimed.map((one) => [one.task.kind, ...rangeOf(one)])).toEqual([
    ["audio", 216, 4],
    ["chunk", 217, 1],
  ]);
  await storeEarly(app, made.prefix, video);
  expect((await answer).status).toBe(200);
});

test("four requested segments of a tenant's audio are encoded at once, and what follows the last one", async () => {
  const made = await published();
  const before = (await job()).tasks.total;
  for (const [index, number] of [280, 244, 200, 164].entries()) {
    const stop = new AbortController();
    const answer = requestEarly(app, made, nameOf(number), { signal: stop.signal });
    await until("the part is divided", async () => (await job()).tasks.total === before + 2 * (index + 1));
    // It is encoded although its request is dropped, and counts until then.
    stop.abort();
    expectError(await answer, 499, "client_closed_request");
  }
  const refused = await requestEarly(app, made, nameOf(120));
  expectError(refused, 503, "segment_not_ready");
  expect(refused.headers.get("retry-after")).toBe("2");
  const video = "360p/00081.m4s";
  const answer = requestEarly(app, made, video);
  await until("its chunk is divided", async () => (await job()).tasks.total > before + 8);
  await storeEarly(app, made.prefix, video);
  expect((await answer).status).toBe(200);
  const urgent: unknown[] = [];
  for (let contract = await light(); contract?.task.chunk.is_urgent; contract = await light()) {
    urgent.push([contract.task.kind, ...rangeOf(contract)]);
    await complete(contract);
  }
  expect(urgent.toSorted()).toEqual([
    ["audio", 164, 4],
    ["audio", 168, 8],
    ["audio", 200, 4],
    ["audio", 244, 4],
    ["audio", 280, 4],
    ["chunk", 80, 1],
    ["chunk", 81, 2],
  ]);
  const next = requestEarly(app, made, nameOf(120));
  expect(rangeOf(await untilUrgent(120))).toEqual([120, 4]);
  await storeEarly(app, made.prefix, nameOf(120));
  expect((await next).status).toBe(200);
});

test("a track that is not listed is not found, and its audio is not encoded earlier", async () => {
  const made = await published();
  const before = (await job()).tasks.total;
  for (const name of ["audio-3", "audio-99", "surround", "audio-1", "audio-01"])
    expectError(await requestEarly(app, made, `${name}/00218.m4s`), 404, "not_found");
  expect((await job()).tasks.total).toBe(before);
  const second = "audio-2/00218.m4s";
  const answer = requestEarly(app, made, second);
  expect(rangeOf(await untilUrgent(216))).toEqual([216, 4]);
  await storeEarly(app, made.prefix, second);
  expect((await answer).status).toBe(200);
});

test("a part that has not exactly its segments ends the encode in parts", async () => {
  await published();
  const contract = await light();
  const { written } = earlyResult(contract, SEGMENTS);
  await callback(app, contract, "complete", { written: [{ ...written[0], segments: written[0].segments.slice(1) }] });
  expect(await job()).toMatchObject({ uncuttable: "inexact" });
});

test("the second part creates the captions: a viewer waits for the first one", async () => {
  await publishedEarly(app, key, { plan: longPlan(), captions: ["en"] });
  const [first, next] = [await light(), await light(), await light()].filter(({ task }) => task.kind === "audio");
  expect(first.outputs.subtitle_paths).toEqual({});
  expect(next.outputs.subtitle_paths).toEqual({ en: expect.stringContaining("captions/en.vtt") });
});

test("the audio of a source that cannot be cut is one task", async () => {
  await publishedEarly(app, key, { plan: longPlan(null) });
  expect((await light()).task).toMatchObject({ kind: "audio", chunk: null });
});

test("of the audio of a short one only the first segments are a part of their own", async () => {
  await publishedEarly(app, key, { plan: { plan, early: { ...early, audio_step: 2 } } });
  const parts = [await light(), await light(), await light()].filter(({ task }) => task.kind === "audio");
  expect(parts.map(rangeOf)).toEqual([
    [0, 2],
    [2, null],
  ]);
  expect(parts.map(({ task }) => task.chunk.is_urgent)).toEqual([true, false]);
});
