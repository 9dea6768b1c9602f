import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, uploaded } from "#test/support/flow.ts";

const DAY = 24 * 3_600_000;
let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});
const list = async (query = "") => (await app.call("GET", `/api/v1/admin/workers${query}`, { admin: app.admin })).body;
const claim = (worker_id: string, more: object = {}) => next(app, undefined, { worker_id, ...more });
const jobOf = async (id: number, credentials: object = { admin: app.admin }) =>
  (await app.call("GET", `/api/v1/transcoding_jobs/${id}`, credentials)).body;

test("a worker that asked for jobs is listed with its version and its running job", async () => {
  expect(await list()).toEqual([]);
  await claim("w1", { version: "0.2.0" });
  const [idle] = await list();
  expect(idle).toEqual({
    id: idle.id,
    worker_id: "w1",
    state: "idle",
    version: "0.2.0",
    jobs: [],
    last_seen_at: idle.last_seen_at,
    created_at: idle.last_seen_at,
    updated_at: idle.last_seen_at,
  });
  const { job, asset } = await uploaded(app, key, { title: "Ocean" });
  app.advance(11_000);
  const { body: contract } = await claim("w1");
  await callback(app, contract, "heartbeat", { progress: 40, stage: "encoding" });
  const [busy] = await list();
  expect(busy).toMatchObject({
    state: "busy",
    version: "0.2.0",
    jobs: [{ id: job.id, asset_id: asset.id, title: "Ocean", progress: 40, stage: "encoding" }],
  });
  expect(Date.parse(busy.last_seen_at) - Date.parse(idle.last_seen_at)).toBeGreaterThanOrEqual(11_000);
  await callback(app, contract, "release");
  app.advance(61_000);
  expect((await list())[0].state).toBe("offline");
  app.advance(8 * DAY);
  expect(await list()).toEqual([]);
});

test("workers are listed for the operator alone, page by page, and a thousand at most", async () => {
  for (let n = 0; n < 1005; n++) {
    app.advance(1);
    await claim(`w${n}`);
  }
  const all = await list("?limit=500");
  expect(all.map((one: { worker_id: string }) => one.worker_id).slice(0, 2)).toEqual(["w1004", "w1003"]);
  expect(await list()).toHaveLength(1000);
  const first = await app.as({ admin: app.admin }).listWorkers({ limit: 2 });
  const link = /^<([^>]+)>/.exec(first.headers.get("link") ?? "")?.[1] as string;
  expect((await app.call("GET", link, { admin: app.admin })).body[0].worker_id).toBe("w1002");
  for (const credentials of [{ key }, { worker: app.worker }])
    expectError(await app.call("GET", "/api/v1/admin/workers", credentials), 401, "unauthorized");
  expectError(await claim("x".repeat(201)), 422, "validation_failed");
  expectError(await claim("w", { version: "x".repeat(101) }), 422, "validation_failed");
});

test("jobs have the title of their asset, and the log of a running job is for the operator", async () => {
  const { job } = await uploaded(app, key, { title: "Ocean" });
  const { body: contract } = await claim("w1");
  const log = `12:00:00 encoding\n${"é".repeat(500)}\n`.repeat(20);
  expect((await callback(app, contract, "heartbeat", { progress: 1, log_tail: log })).status).toBe(200);
  expect(await jobOf(job.id)).toMatchObject({ asset: { title: "Ocean" }, status: "running", log_tail: log });
  // A heartbeat without a log keeps it.
  await callback(app, contract, "heartbeat", { progress: 2 });
  expect((await jobOf(job.id)).log_tail).toBe(log);
  const own = await jobOf(job.id, { key });
  expect(own.asset).toEqual({ title: "Ocean", external_id: expect.stringMatching(/^vid_/) });
  expect(own).not.toHaveProperty("log_tail");
  const [listed] = (await app.as({ admin: app.admin }).listJobs()).body;
  expect(listed.asset.title).toBe("Ocean");
  expect(listed).not.toHaveProperty("log_tail");
  const long = await callback(app, contract, "heartbeat", { log_tail: "x".repeat(40_000) });
  expectError(long, 422, "validation_failed");
  expectError(await callback(app, contract, "heartbeat", { log_tail: 5 }), 422, "validation_failed");
  await callback(app, contract, "fail", {
    code: "encode_failed",
    message: "no",
    retryable: false,
    log_tail: "the end",
  });
  expect(await jobOf(job.id)).toMatchObject({ status: "failed", log_tail: "the end" });
});
