import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { completeEarly, publishedEarly, requestEarly, storeEarly } from "#test/support/early.ts";
import { callback, uploaded } from "#test/support/flow.ts";
import { finish, nextTask, runAll } from "#test/support/tasks.ts";

const MAX_ATTEMPTS = 2;

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, max_attempts: MAX_ATTEMPTS });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);
const job = async (id: number) => (await app.as({ admin: app.admin }).getJob(id)).body;

/** Claims tasks until one of the kind is leased; those before it are completed, but of `besides` they stay leased. */
async function leased(kind: string, { besides = [] as string[], plan = {} } = {}) {
  const made = await uploaded(app, key);
  for (;;) {
    const { status, body } = await nextTask(app);
    if (status !== 200) throw new Error(`There is no task of the kind ${kind}`);
    if (body.task.kind === kind) {
      await app.newEvents();
      return { id: made.job.id as number, contract: body };
    }
    if (!besides.includes(body.task.kind)) await finish(app, body, plan);
  }
}

type Loss = (contract: any) => Promise<unknown>;
const LOSSES: [string, Loss][] = [
  ["fails", (contract) => callback(app, contract, "fail", { code: "encoder_failed", message: "Broken." })],
  [
    "is lost",
    async () => {
      app.advance(61_000);
      await app.runTask("recover-leases");
    },
  ],
];
/** Lets the time pass in which a task that has failed is not given out. */
const waited = () => app.advance(600_000);

describe.each(LOSSES)("a task that %s", (_, lose) => {
  test.each(["chunk", "audio", "images"])(
    "of the kind %s is queued again without events, until its attempts are used up",
    async (kind) => {
      const { id, contract } = await leased(kind);
      await lose(contract);
      expect(await types()).toEqual([]);
      expect(await job(id)).toMatchObject({ status: "running", attempt: 1, error: null });
      waited();
      const { body: again } = await nextTask(app);
      expect(again.task).toEqual(contract.task);
      expect(again.outputs.prefix).toBe(contract.outputs.prefix);
      await lose(again);
      expect(await types()).toEqual(["video.job.failed", "video.job.queued"]);
      waited();
      expect(await runAll(app)).toEqual(["plan", "audio", ...Array(5).fill("chunk"), "images"]);
      expect(await job(id)).toMatchObject({ status: "completed", attempt: 2 });
    },
  );

  test.each(["plan", "whole"])("of the kind %s is the attempt of the job", async (kind) => {
    const { id, contract } = await leased(kind, { plan: { uncuttable: "passthrough" } });
    await lose(contract);
    expect(await types()).toEqual(["video.job.failed", "video.job.queued"]);
    waited();
    expect((await nextTask(app)).body).toMatchObject({ job: { id, attempt: 2 }, task: { kind: "plan" } });
  });

  test("leaves those that other workers run: a part that fails takes nothing with it", async () => {
    const { contract: chunk, id } = await leased("chunk", { besides: ["audio"] });
    const { body: other } = await nextTask(app);
    // Only one of the three is lost.
    app.advance(30_000);
    expect((await callback(app, other, "heartbeat")).status).toBe(200);
    app.advance(20_000);
    await callback(app, chunk, "fail", { code: "encoder_failed", message: "Broken." });
    await finish(app, other);
    expect(await job(id)).toMatchObject({ status: "running", attempt: 1 });
  });
});

describe("a task that is released", () => {
  test.each(["audio", "chunk"])("of the kind %s is queued again while the other one runs", async (kind) => {
    const { contract: plan } = await leased("plan");
    await finish(app, plan);
    const audio = (await nextTask(app)).body;
    const chunk = (await nextTask(app)).body;
    await app.newEvents();
    const [own, other] = kind === "audio" ? [audio, chunk] : [chunk, audio];
    await callback(app, own, "release");
    expect(await types()).toEqual([]);
    expect((await nextTask(app)).body.task).toEqual(own.task);
    expect((await callback(app, other, "heartbeat")).status).toBe(200);
  });

  test("of the kind chunk keeps the audio that is complete", async () => {
    const { id, contract } = await leased("chunk");
    await callback(app, contract, "release");
    expect(await types()).toEqual([]);
    expect(await job(id)).toMatchObject({ status: "running", attempt: 1, tasks: { completed: 2 } });
    expect(await runAll(app)).toEqual([...Array(5).fill("chunk"), "images"]);
  });

  test("of the kind images keeps all parts", async () => {
    const { id, contract } = await leased("images");
    for (let round = 0; round < 2 * MAX_ATTEMPTS; round++) {
      await callback(app, contract, "release");
      const { body: again } = await nextTask(app);
      expect(again.task).toEqual(contract.task);
      contract.lease = again.lease;
    }
    expect(await types()).toEqual([]);
    await finish(app, contract);
    expect(await job(id)).toMatchObject({ status: "completed", attempt: 1 });
  });

  test.each(["audio", "chunk"])("of the kind %s is the job, while nothing but the plan is complete", async (kind) => {
    const { id, contract } = await leased(kind, { plan: { has_audio: kind === "audio" } });
    await callback(app, contract, "release");
    expect(await types()).toEqual(["video.job.queued"]);
    expect(await job(id)).toMatchObject({ status: "queued", attempt: 0 });
  });

  test("continues what viewers play already, under the same prefix", async () => {
    const made = await publishedEarly(app, key, { isHeadLeft: true });
    await app.newEvents();
    await callback(app, made.head, "release");
    expect(await types()).toEqual([]);
    const next = [(await nextTask(app)).body, (await nextTask(app)).body];
    const again = next.find(({ task }) => task.publishes);
    expect(again.task).toEqual(made.head.task);
    expect(again.outputs.prefix).toBe(made.prefix);
    await completeEarly(app, again);
    // Their requests find the task of the segment.
    const answer = requestEarly(app, made, "720p/00013.m4s");
    await storeEarly(app, made.prefix, "720p/00013.m4s");
    expect((await answer).status).toBe(200);
  });
});
