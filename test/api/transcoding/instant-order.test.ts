import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import {
  completeEarly,
  EARLY_PLAN,
  type Early,
  publishedEarly,
  RENDITIONS,
  requestEarly,
  storeEarly,
} from "#test/support/early.ts";
import { uploaded } from "#test/support/flow.ts";
import { finish, nextTask } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60 });
  app.stopClock();
  key = await app.key((await app.tenant()).id);
});

const main = async (worker = "w1") => (await nextTask(app, undefined, { worker_id: worker })).body;
/** The next task of a worker that encodes another urgent chunk: no chunk. */
const light = async (worker = "w1") => (await nextTask(app, undefined, { lane: "light", worker_id: worker })).body;
const complete = (contract: any) => completeEarly(app, contract);
/** The next light task; requests of segments arrive at the server in their own time. */
const untilLight = (): Promise<any> =>
  until("there is a light task", async () => {
    const contract = await light();
    return contract?.task && contract;
  });

type Part = [first: number, renditions: string];
const partOf = ({ task: { chunk } }: any): Part => [chunk.first_segment, (chunk.renditions ?? RENDITIONS).join(" ")];

/** A request that has divided a chunk, and is waiting. */
async function requested(made: Early, path: string) {
  const total = async () => (await app.as({ admin: app.admin }).getJob(1)).body.tasks.total;
  const before = await total();
  const answer = requestEarly(app, made, path);
  await expect.poll(total, { interval: 20 }).toBeGreaterThan(before);
  return { answer };
}

/** Completes the first segments of the low renditions, which take `seconds`. */
async function leadTaking(seconds: number, meanwhile = async () => {}) {
  const made = await publishedEarly(app, key);
  await complete(await main());
  const lead = await main();
  expect(partOf(lead)).toEqual([1, "480p 360p"]);
  await meanwhile();
  app.advance(seconds * 1000);
  await complete(lead);
  return made;
}

/** Completes everything; the chunks in order, and how often each segment was encoded. */
async function rest(...running: any[]) {
  const order: Part[] = [];
  const counts = new Map<string, number>();
  const add = (contract: any) => {
    const { chunk } = contract.task;
    const end = chunk.first_segment + (chunk.segments ?? 25 - chunk.first_segment);
    for (const name of chunk.renditions ?? RENDITIONS)
      for (let n = chunk.first_segment; n < end; n++) counts.set(`${name} ${n}`, (counts.get(`${name} ${n}`) ?? 0) + 1);
  };
  for (const one of running) {
    add(one);
    await complete(one);
  }
  for (;;) {
    const contract = await main();
    if (contract.task.kind === "images") {
      // Three low segments have been encoded before.
      expect(contract.task.written.map(({ segments }: any) => segments.length)).toEqual([25, 25, 25, 25]);
      await finish(app, contract);
      return { order, counts };
    }
    order.push(partOf(contract));
    add(contract);
    await complete(contract);
  }
}
const isOnce = (counts: Map<string, number>) =>
  [...counts.values()].every((count) => count === 1) && counts.size === 69;

describe("the order of renditions", () => {
  test("is all at once in the order of time, where that is fast enough", async () => {
    await leadTaking(3);
    const { order, counts } = await rest();
    expect(order).toEqual([...[3, 8, 14, 19].map((first): Part => [first, RENDITIONS.join(" ")]), [0, "720p"]]);
    expect(isOnce(counts)).toBe(true);
  });

  test("is what can be kept ahead of playback first, and the others after all of it", async () => {
    await leadTaking(5);
    const { order, counts } = await rest();
    expect(order).toEqual([
      ...[3, 8, 14, 19].map((first): Part => [first, "480p 360p"]),
      ...[0, 3, 8, 14, 19].map((first): Part => [first, "720p"]),
    ]);
    expect(isOnce(counts)).toBe(true);
  });

  test("is at least the smallest one, on the slowest machine", async () => {
    await leadTaking(59);
    const { order } = await rest();
    expect(order[0]).toEqual([3, "360p"]);
    expect(new Set(order.map(([, names]) => names))).toEqual(new Set(["360p", "720p 480p", "720p"]));
  });

  test("counts all workers that encode the video", async () => {
    let other: any;
    await leadTaking(5, async () => {
      other = await main("w2");
    });
    const { order } = await rest(other);
    expect(order[0]?.[1]).toBe(RENDITIONS.join(" "));
  });

  test("stays the same after a request of a deferred rendition, whose next segments come first", async () => {
    const made = await leadTaking(5);
    const running = await main();
    const answer = requestEarly(app, made, "720p/00011.m4s");
    const urgent = await untilLight();
    expect(urgent.task.chunk).toMatchObject({ first_segment: 10, segments: 1, renditions: ["720p"], is_urgent: true });
    await storeEarly(app, made.prefix, "720p/00011.m4s");
    expect((await answer).status).toBe(200);
    const ahead = await light("w2");
    expect(ahead.task.chunk).toMatchObject({ first_segment: 11, renditions: ["720p"], is_urgent: true });
    const { order, counts } = await rest(running, urgent, ahead);
    const high = order.findIndex(([, names]) => names === "720p");
    expect(order.slice(0, high).every(([, names]) => names === "480p 360p")).toBe(true);
    expect(order.slice(high).every(([, names]) => names === "720p")).toBe(true);
    expect(isOnce(counts)).toBe(true);
  });
});

describe("the segments after a requested one", () => {
  test("are one urgent task at a time for each video, of the last request", async () => {
    const made = await leadTaking(1);
    const running = await main();
    const first = await requested(made, "480p/00011.m4s");
    // The first viewer seeks.
    const second = await requested(made, "480p/00019.m4s");
    const urgent = [await light(), await light("w2")];
    expect(urgent.map(({ task }) => task.chunk.first_segment)).toEqual([10, 18]);
    const ahead = await light("w3");
    expect(ahead.task.chunk).toMatchObject({ first_segment: 19, segments: 2, renditions: ["480p"] });
    expect((await nextTask(app, undefined, { lane: "light" })).status).toBe(204);
    for (const path of ["480p/00011.m4s", "480p/00019.m4s"]) await storeEarly(app, made.prefix, path);
    expect([(await first.answer).status, (await second.answer).status]).toEqual([200, 200]);
    expect(isOnce((await rest(running, ...urgent, ahead)).counts)).toBe(true);
  });

  test("are the next requested task as a whole", async () => {
    const made = await leadTaking(1);
    const running = await main();
    const first = requestEarly(app, made, "480p/00019.m4s");
    const urgent = await untilLight();
    const second = requestEarly(app, made, "480p/00020.m4s");
    await storeEarly(app, made.prefix, "480p/00019.m4s");
    await storeEarly(app, made.prefix, "480p/00020.m4s");
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    const next = await light("w2");
    expect(next.task.chunk).toMatchObject({ first_segment: 19, segments: 2, renditions: ["480p"] });
    expect(isOnce((await rest(running, urgent, next)).counts)).toBe(true);
  });
});

test("a requested segment does not wait for those that follow another one, unless a viewer waits for them too", async () => {
  const made = await publishedEarly(app, key);
  for (let i = 0; i < 2; i++) await complete(await main());
  const answers = [requestEarly(app, made, "360p/00010.m4s")];
  await complete(await untilLight());
  const ahead = await untilLight();
  expect(partOf(ahead)).toEqual([10, "360p"]);
  answers.push(requestEarly(app, made, "720p/00020.m4s"));
  const other = await untilLight();
  expect(partOf(other)).toEqual([19, "720p"]);
  await complete(other);
  answers.push(requestEarly(app, made, "360p/00011.m4s"));
  await until("it is known that a viewer waits for it", async () => {
    const row = await app.opened.app.db.get<{ service_class: string }>(
      sql`select service_class from transcoding_tasks where id = ${ahead.task.id}`,
    );
    return row?.service_class === "requested";
  });
  answers.push((await requested(made, "480p/00023.m4s")).answer);
  expect((await nextTask(app, undefined, { lane: "light" })).status).toBe(204);
  expect(partOf(await light("w2"))).toEqual([22, "480p"]);
  for (const path of ["360p/00010.m4s", "720p/00020.m4s", "360p/00011.m4s", "480p/00023.m4s"])
    await storeEarly(app, made.prefix, path);
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
});

test("a requested segment is for a worker that can encode it now, also when another one waits longer", async () => {
  const made = await leadTaking(1);
  await main();
  const first = await requested(made, "480p/00011.m4s");
  // Its one urgent chunk.
  expect((await light()).task.chunk).toMatchObject({ first_segment: 10, is_urgent: true });
  const urgent = (worker: string) =>
    nextTask(app, undefined, { lane: "urgent", worker_id: worker, wait_seconds: worker === "w1" ? 3 : 20 });
  const busy = urgent("w1");
  const free = urgent("w2");
  await until("both are known", async () => {
    const { body } = await app.as({ admin: app.admin }).listWorkers();
    return ["w1", "w2"].every((name) => body.some(({ worker_id }: { worker_id: string }) => worker_id === name));
  });
  // A write behind their claims: when it is answered, they wait.
  await app.key((await app.tenant()).id);
  const second = await requested(made, "480p/00019.m4s");
  const { body } = await free;
  expect(body.task.chunk).toMatchObject({ first_segment: 18, segments: 1 });
  for (const path of ["480p/00011.m4s", "480p/00019.m4s"]) await storeEarly(app, made.prefix, path);
  expect([(await first.answer).status, (await second.answer).status]).toEqual([200, 200]);
  expect((await busy).status).toBe(204);
});

test("the head of a video is encoded alone, and next to a chunk that its worker has begun", async () => {
  const begin = async () => {
    const made = await uploaded(app, key, { early_playback: true });
    // The worker that is free gets it.
    const { body: plan } = await nextTask(app, undefined, { lane: "light" });
    expect([plan.task.kind, plan.job.id]).toEqual(["plan", made.job.id]);
    await finish(app, plan, { ...EARLY_PLAN });
  };
  await begin();
  expect((await light()).task.kind).toBe("audio");
  expect(await light()).toBeUndefined();
  const { body: head } = await nextTask(app);
  expect(head.task).toMatchObject({ kind: "chunk", publishes: true });
  expect(await light()).toBeUndefined();
  await completeEarly(app, head);
  const { body: lead } = await nextTask(app);
  expect(lead.task.chunk).toMatchObject({ first_segment: 1, is_urgent: true });
  await completeEarly(app, lead);
  expect((await nextTask(app)).body.task.chunk).toMatchObject({ is_urgent: false });

  await begin();
  expect((await light()).task).toMatchObject({ kind: "chunk", publishes: true });
});
