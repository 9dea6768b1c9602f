import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, putArtifacts, uploaded } from "#test/support/flow.ts";
import { finish, nextTask, runAll, runNext, written } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, max_attempts: 2, job_timeout_seconds: 3600, job_stall_seconds: 600 });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);
const job = async (id: number) => (await app.as({ admin: app.admin }).getJob(id)).body;
const manage = (id: number, verb: string) =>
  app.call("POST", `/api/v1/transcoding_jobs/${id}/${verb}`, { admin: app.admin });
const fail = (contract: any, fields: Record<string, unknown> = {}) =>
  callback(app, contract, "fail", { code: "encoder_failed", message: "Broken.", log_tail: "the log", ...fields });
const VERBS = ["heartbeat", "complete", "fail", "release"] as const;
async function isStale(contract: any) {
  for (const verb of VERBS) {
    const body = verb === "complete" ? { written: contract.task.chunk ? written(contract) : null } : {};
    expectError(await callback(app, contract, verb, body), 409, "stale_lease");
  }
  const sign = { worker: app.worker, lease: contract.lease.token, body: { paths: [`${contract.outputs.prefix}a`] } };
  expectError(await app.call("POST", contract.artifacts.sign_url, sign), 409, "stale_lease");
}

/** A job whose audio and first two chunks are leased. */
async function begun(fields: Record<string, unknown> = {}) {
  const made = await uploaded(app, key, fields);
  await runNext(app);
  const leased = [];
  for (let i = 0; i < 3; i++) leased.push((await nextTask(app)).body);
  await app.newEvents();
  const [audio, one, two] = leased;
  return { ...made, audio, one, two };
}

describe("a task", () => {
  test("whose lease expired is given to another worker, without events or an attempt of the job", async () => {
    const { job: made, one, two, audio } = await begun();
    app.advance(50_000);
    for (const each of [one, audio]) expect((await callback(app, each, "heartbeat")).status).toBe(200);
    app.advance(50_000);
    await isStale(two);
    await app.runTask("recover-leases");
    await isStale(two);
    expect(await types()).toEqual([]);
    const again = (await nextTask(app)).body;
    expect(again.task).toEqual(two.task);
    expect(again.outputs.prefix).toBe(two.outputs.prefix);
    expect(again.lease.token).not.toBe(two.lease.token);
    await isStale(two);
    for (const each of [again, one, audio]) await finish(app, each);
    await runAll(app);
    expect(await job(made.id)).toMatchObject({ status: "completed", attempt: 1, tasks: { completed: 8 } });
  });

  test("without progress, or longer than the time limit, is taken from its worker", async () => {
    const { job: made, one } = await begun();
    for (let i = 0; i < 13; i++) {
      app.advance(50_000);
      await callback(app, one, "heartbeat", { progress: 1 });
    }
    await app.runTask("recover-leases");
    await isStale(one);
    const { body: again } = await nextTask(app);
    expect(again.task).toMatchObject({ kind: "audio" });
    for (let i = 0; i < 73; i++) {
      app.advance(50_000);
      await callback(app, again, "heartbeat", { progress: i });
    }
    await app.runTask("recover-leases");
    // Another run of this part would take as long: the source is encoded in one run.
    expect(await job(made.id)).toMatchObject({
      status: "running",
      uncuttable: "inexact",
      tasks: { total: 1, queued: 1 },
    });
  });

  test("that fails is repeated after the backoff of jobs, until its attempts are used up", async () => {
    const { job: made, one, two, audio } = await begun();
    await finish(app, audio);
    const { body } = await fail(one);
    expect(body).toMatchObject({ status: "running", attempt: 1, error: null });
    expect((await job(made.id)).log_tail).toBe("the log");
    const again = (await nextTask(app)).body;
    expect(again.task).toEqual(one.task);
    expect(await types()).toEqual([]);
    await callback(app, again, "heartbeat", { log_tail: "the last lines" });
    const last = await fail(again, { log_tail: undefined, code: "poisoned" });
    expect(last.body).toMatchObject({ status: "queued", attempt: 1, error: { code: "poisoned", message: "Broken." } });
    expect(await types()).toEqual(["video.job.failed", "video.job.queued"]);
    expect((await job(made.id)).log_tail).toBe("the last lines");
    expect((await callback(app, two, "heartbeat")).body).toMatchObject({ status: "canceled", cancel_requested: true });
    expectError(await callback(app, two, "complete", { written: written(two) }), 409, "stale_lease");

    // The next attempt begins with another plan, under another prefix.
    const { body: plan } = await nextTask(app);
    expect(plan).toMatchObject({ job: { id: made.id, attempt: 2 }, task: { kind: "plan" } });
    expect(plan.outputs.prefix).not.toBe(one.outputs.prefix);
    expect(await types()).toEqual(["video.job.started"]);
    await isStale(two);
    expect((await job(made.id)).tasks).toEqual({ total: 1, queued: 0, running: 1, completed: 0, failed: 0 });
    await fail(plan, { retryable: false });
    expect(await job(made.id)).toMatchObject({ status: "failed", attempt: 2, tasks: { total: 1, failed: 1 } });
    expect(await types()).toEqual(["video.job.failed", "video.asset.errored"]);
  });

  test("that is released is not counted", async () => {
    const { one } = await begun();
    let leased = one;
    for (let i = 0; i < 5; i++) {
      expect((await callback(app, leased, "release")).status).toBe(200);
      await isStale(leased);
      leased = (await nextTask(app)).body;
      expect(leased.task).toEqual(one.task);
    }
    expect(await types()).toEqual([]);
  });

  test.each(["plan", "images", "whole"])("of the kind %s that fails for good fails the job", async (kind) => {
    const made = await uploaded(app, key);
    for (;;) {
      const { body } = await nextTask(app);
      if (body.task.kind === kind) {
        await app.newEvents();
        await fail(body, { retryable: false });
        break;
      }
      await finish(app, body, { uncuttable: kind === "whole" ? "passthrough" : null });
    }
    expect(await job(made.job.id)).toMatchObject({ status: "failed", error: { code: "encoder_failed" } });
    expect(await types()).toEqual(["video.job.failed", "video.asset.errored"]);
  });

  test("that reports a damaged source fails the job", async () => {
    const { job: made, one } = await begun();
    await fail(one, { code: "source_corrupt", retryable: false });
    expect(await job(made.id)).toMatchObject({ status: "failed", error: { code: "source_corrupt" } });
  });
});

test("a source that is encoded in one run has another prefix each time, and no other attempt of the job", async () => {
  const made = await uploaded(app, key);
  const plan = { uncuttable: "long_gop" };
  await runNext(app, plan);
  const { body: first } = await nextTask(app);
  await putArtifacts(app, first);
  await app.newEvents();
  // The job itself is what the worker has lost: its attempt counts, with the usual events.
  app.advance(61_000);
  await app.runTask("recover-leases");
  expect(await types()).toEqual(["video.job.failed", "video.job.queued"]);
  await runNext(app, plan);
  const { body: second } = await nextTask(app);
  await callback(app, second, "release");
  expect(await job(made.job.id)).toMatchObject({ status: "queued", attempt: 1, stage: "queued" });
  await runNext(app, plan);
  const { body: third } = await nextTask(app);
  for (const each of [second, third]) expect(each.task).toMatchObject({ kind: "whole", plan: null });
  expect(new Set([first, second, third].map(({ outputs }) => outputs.prefix)).size).toBe(3);
  await isStale(first);
  // What the lost attempt has written is deleted, and only that.
  const objects = app.opened.app.objects;
  const written = await putArtifacts(app, third);
  for (const progress of [1, 2, 3, 4, 5]) {
    app.advance(40_000);
    await callback(app, third, "heartbeat", { progress });
  }
  await app.runTask("sweep-attempts");
  expect(await objects?.head(first.outputs.manifest_path)).toBeNull();
  expect(await objects?.head(written.manifest_path)).not.toBeNull();
  await finish(app, third);
  expect(await job(made.job.id)).toMatchObject({
    status: "completed",
    attempt: 2,
    uncuttable: "long_gop",
    tasks: { total: 2, completed: 2 },
  });
  expect(await types()).toEqual(["video.job.started", "video.job.queued", "video.job.started", "video.asset.ready"]);
});

describe("chunks that are not exact", () => {
  const init = (contract: any) => written(contract).map((each: any) => ({ ...each, init: { ...each.init, delay: 7 } }));
  test.each<[string, (contract: any) => Promise<unknown>]>([
    ["a worker says so", (chunk) => fail(chunk, { code: "inexact" })],
    ["one fails for good", (chunk) => fail(chunk, { retryable: false })],
    ["one has another init segment", (chunk) => callback(app, chunk, "complete", { written: init(chunk) })],
    ["one lacks a rendition", (chunk) => callback(app, chunk, "complete", { written: written(chunk).slice(1) })],
    [
      "one lacks a segment",
      (chunk) =>
        callback(app, chunk, "complete", {
          written: written(chunk).map((each: any) => ({ ...each, segments: each.segments.slice(1) })),
        }),
    ],
    [
      "one begins elsewhere",
      (chunk) =>
        callback(app, chunk, "complete", { written: written(chunk).map((each: any) => ({ ...each, first: 0 })) }),
    ],
  ])("are replaced by one run: %s", async (_, end) => {
    const { job: made, asset, audio, one, two } = await begun();
    await finish(app, one);
    const before = await job(made.id);
    expect(await end(two)).toMatchObject({ status: 200, body: { status: "running", attempt: 1 } });
    const after = await job(made.id);
    expect(after).toMatchObject({
      uncuttable: "inexact",
      tasks: { total: 1, queued: 1 },
      stage: "encoding",
      attempt: 1,
    });
    expect(after.progress).toBe(before.progress);
    expect((await callback(app, audio, "heartbeat")).body).toMatchObject({ cancel_requested: true });
    expectError(await callback(app, audio, "complete", { written: written(audio) }), 409, "stale_lease");
    await isStale({ ...two });
    const { body: whole } = await nextTask(app);
    expect(whole.task).toMatchObject({ kind: "whole", plan: null, written: null });
    // A worker that does not know yet writes its segments elsewhere.
    expect(whole.outputs.prefix).not.toBe(two.outputs.prefix);
    expect(await types()).toEqual([]);
    await finish(app, whole);
    expect(await types()).toEqual(["video.asset.ready"]);
    expect(await job(made.id)).toMatchObject({ status: "completed", attempt: 1, progress: 100 });
    const { body } = await app.as(key).getAsset(asset.id);
    expect(body.playback_status).toBe("ready");
  });

  test("are removed from storage, and the source is not cut again", async () => {
    const { job: made, one } = await begun();
    const objects = app.opened.app.objects;
    await objects?.put(`${one.outputs.prefix}360p/1.m4s`, Buffer.from("segment"));
    await fail(one, { code: "inexact" });
    const { body: whole } = await nextTask(app);
    await fail(whole);
    expect(await types()).toEqual(["video.job.failed", "video.job.queued"]);
    app.advance(121_000);
    await app.runTask("sweep-attempts");
    expect(await objects?.head(`${one.outputs.prefix}360p/1.m4s`)).toBeNull();
    await runNext(app);
    expect(await job(made.id)).toMatchObject({ uncuttable: "inexact", attempt: 2, tasks: { total: 2, queued: 1 } });
    expect((await nextTask(app)).body.task.kind).toBe("whole");
  });
});

describe("a job with tasks", () => {
  test("that is canceled takes its tasks along, and can be retried", async () => {
    const { job: made, one, two } = await begun();
    await finish(app, one);
    expect((await manage(made.id, "cancel")).body).toMatchObject({ status: "canceled" });
    expect(await types()).toEqual(["video.asset.errored"]);
    expect((await callback(app, two, "heartbeat")).body).toMatchObject({ status: "canceled", cancel_requested: true });
    for (const verb of ["fail", "release"] as const) expectError(await callback(app, two, verb), 409, "stale_lease");
    expect((await nextTask(app)).status).toBe(204);
    await manage(made.id, "retry");
    expect(await runAll(app)).toEqual(["plan", "audio", ...Array(5).fill("chunk"), "images"]);
    expect(await job(made.id)).toMatchObject({ status: "completed", attempt: 1 });
  });

  test("is deleted with its asset", async () => {
    const { asset, one } = await begun();
    expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
    for (const verb of VERBS) expectError(await callback(app, one, verb), 404, "not_found");
    expect((await nextTask(app)).status).toBe(204);
  });

  test("is not recovered as a job, and keeps its objects while tasks run", async () => {
    const { job: made, one } = await begun();
    const objects = app.opened.app.objects;
    await objects?.put(`${one.outputs.prefix}360p/1.m4s`, Buffer.from("segment"));
    app.advance(86_400_000);
    await app.runTask("sweep-attempts");
    expect(await objects?.head(`${one.outputs.prefix}360p/1.m4s`)).not.toBeNull();
    // The tasks are lost, the attempt is not.
    await app.runTask("recover-leases");
    expect(await job(made.id)).toMatchObject({ status: "running", attempt: 1 });
  });

  test("belongs to its own tasks: tokens and ids of others are refused", async () => {
    const first = await begun();
    await manage(first.job.id, "cancel");
    const second = await begun();
    await isStale({ ...second.one, lease: second.two.lease });
    await isStale({ ...second.one, lease: first.one.lease });
    const foreign = second.one.callbacks.heartbeat_url.replace(`/${second.job.id}/tasks`, `/${first.job.id}/tasks`);
    const beat = (url: string) =>
      app.call("POST", url, { worker: app.worker, lease: second.one.lease.token, body: {} });
    expectError(await beat(foreign), 409, "stale_lease");
    expectError(await beat(foreign.replace(`/${first.job.id}/tasks`, "/999/tasks")), 404, "not_found");
    // The job itself has no lease.
    const ofJob = second.one.callbacks.heartbeat_url.replace(/\/tasks\/\d+/, "");
    expectError(await beat(ofJob), 409, "stale_lease");
    expect((await callback(app, second.one, "heartbeat")).status).toBe(200);
  });
});
