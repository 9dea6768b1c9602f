import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { callback, uploaded } from "#test/support/flow.ts";
import { finish, nextTask, runNext } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60 });
  key = await app.key((await app.tenant()).id);
});

const nextLight = (fields: Record<string, unknown> = {}) => nextTask(app, undefined, { lane: "light", ...fields });

test("the light lane receives audio and images, next to a chunk of the same worker", async () => {
  await uploaded(app, key);
  expect((await nextLight()).status).toBe(204);
  expect((await runNext(app)).task.kind).toBe("plan");
  const audio = (await nextLight()).body;
  expect([audio.task.kind, audio.lane]).toEqual(["audio", "light"]);
  expect((await nextLight()).status).toBe(204);
  const chunk = (await nextTask(app)).body;
  expect([chunk.task.kind, chunk.lane]).toEqual(["chunk", undefined]);
  await finish(app, audio);
  await finish(app, chunk);
  for (let i = 1; i < 5; i++) await runNext(app);
  const images = (await nextLight()).body;
  expect(images.task.kind).toBe("images");
  expect((await finish(app, images)).status).toBe("completed");
});

test("a worker with one lane completes jobs", async () => {
  await uploaded(app, key);
  const kinds: string[] = [];
  for (let each = await runNext(app); each; each = await runNext(app)) kinds.push(each.task.kind);
  expect(kinds).toEqual(["plan", "audio", ...Array(5).fill("chunk"), "images"]);
});

test("a light claim that waits receives the task that is queued meanwhile, and keeps no other from a worker", async () => {
  const light = nextLight({ wait_seconds: 20 });
  const main = nextTask(app, undefined, { wait_seconds: 20 });
  await uploaded(app, key);
  const plan = (await main).body;
  expect(plan.task.kind).toBe("plan");
  await finish(app, plan);
  expect((await light).body.task.kind).toBe("audio");
});

test("a light claim without support for tasks, or with an unknown lane, is no second lane", async () => {
  await uploaded(app, key);
  expect((await nextLight({ lane: "heavy" })).status).toBe(422);
  const { body } = await nextLight({ capabilities: {} });
  expect(body.task).toBeUndefined();
  await callback(app, body, "release");
});
