import { beforeEach, describe, expect, test } from "vitest";
import { hmac } from "#lib/base";
import { callbackReceipts, taskLeases, transcodingJobs, transcodingTasks } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { putArtifacts, uploaded } from "#test/support/flow.ts";

const BASE = "/api/v1/cloud/v2/transcoding_jobs";
let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, max_attempts: 3 });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);

const claim = (headers: Record<string, string> = {}) =>
  app.as({ worker: app.worker, headers }).claimCloudJob({ worker_id: "cloud-1" });
type Fence = { lease?: string; attempt?: string | number };
const callback = (contract: any, name: string, body: unknown = {}, fence: Fence = {}) =>
  app.call("POST", contract.callbacks[`${name}_url`], {
    worker: app.worker,
    lease: fence.lease ?? contract.lease.token,
    headers: { "x-svc-job-attempt-id": String(fence.attempt ?? contract.attempt_id) },
    body,
  });
/** Everything that a refused callback must leave unchanged. */
const state = async () => {
  const { db } = app.opened.app;
  const tables = [transcodingJobs, transcodingTasks, taskLeases];
  return Promise.all(tables.map((table) => db.select().from(table).all()));
};
const receipts = () => app.opened.app.db.select().from(callbackReceipts).all();

async function claimed() {
  const made = await uploaded(app, key);
  const { status, body } = await claim();
  expect(status).toBe(200);
  await app.newEvents();
  return { made, contract: body };
}

describe("a fenced claim", () => {
  test("returns the worker contract with an attempt id, and separate callbacks", async () => {
    expect((await claim()).status).toBe(204);
    const { made, contract } = await claimed();
    expect(contract).toMatchObject({ schema_version: 1, job: { id: made.job.id, attempt: 1 } });
    expect(contract.attempt_id).toBeTypeOf("number");
    for (const url of [...Object.values(contract.callbacks), contract.artifacts.sign_url])
      expect(url).toContain(`${BASE}/${made.job.id}/`);
  });

  test("with one Idempotency-Key is one lease", async () => {
    app.stopClock();
    await uploaded(app, key);
    await uploaded(app, key);
    const first = await claim({ "idempotency-key": "mine" });
    expect((await claim({ "idempotency-key": "mine" })).body).toEqual(first.body);
    expect((await claim()).body.job.id).not.toBe(first.body.job.id);
    // Servers derived it so before jobs consisted of tasks: what they leased stays leased.
    const { job, attempt_id, lease } = first.body;
    expect(lease.token).toBe(hmac(app.opened.app.secrets.signing_secret, `lease\n${job.id}\n${attempt_id}\nmine`));
  });
});

describe("a fence", () => {
  test("requires lease token and attempt id, and refuses any mismatch", async () => {
    const { contract } = await claimed();
    const other = (await claimed()).contract;
    const before = await state();
    const kept = await receipts();
    const url = contract.callbacks.complete_url;
    const { token } = contract.lease;
    const without = { worker: app.worker, body: {} };
    expectError(await app.call("POST", url, without), 401, "unauthorized");
    expectError(await app.call("POST", url, { ...without, lease: token }), 422, "parameter_missing");
    for (const fence of [
      { attempt: other.attempt_id },
      { lease: other.lease.token },
      { lease: other.lease.token, attempt: other.attempt_id },
      { attempt: 999_999 },
      { attempt: "x" },
      { attempt: "1e0" },
      { attempt: "9".repeat(40) },
      { lease: "guess" },
    ])
      for (const name of ["heartbeat", "complete", "fail", "release"])
        expectError(
          await callback(contract, name, {}, fence),
          409,
          "attempt_conflict",
          `${name} ${JSON.stringify(fence)}`,
        );
    const sign = await app.call("POST", contract.artifacts.sign_url, {
      worker: app.worker,
      lease: token,
      headers: { "x-svc-job-attempt-id": String(other.attempt_id) },
      body: { paths: [contract.outputs.manifest_path] },
    });
    expectError(sign, 409, "attempt_conflict");
    const unknown = await app.call("POST", `${BASE}/999/heartbeat`, {
      ...without,
      lease: token,
      headers: { "x-svc-job-attempt-id": "1" },
    });
    expectError(unknown, 404, "not_found");
    expect(await state()).toEqual(before);
    expect(await receipts()).toEqual(kept);
    expect(await types()).toEqual([]);
  });

  test("that has expired changes neither job, nor receipt, nor result", async () => {
    const { contract } = await claimed();
    expect((await callback(contract, "heartbeat", { progress: 10 })).status).toBe(200);
    app.advance(61_000);
    const before = await state();
    const kept = await receipts();
    for (const name of ["heartbeat", "complete", "fail", "release"])
      expectError(await callback(contract, name, { progress: 50 }), 409, "attempt_conflict", name);
    expect([await state(), await receipts()]).toEqual([before, kept]);
    await app.runTask("recover-leases");
    const fresh = (await claim()).body;
    expect(fresh.job.attempt).toBe(2);
    expectError(await callback(contract, "fail", {}), 409, "attempt_conflict");
    expect((await callback(fresh, "heartbeat", { progress: 20 })).body).toMatchObject({ status: "running" });
  });
});

describe("a receipt", () => {
  test("of a completion answers its repeat permanently; another body is a conflict", async () => {
    const { made, contract } = await claimed();
    const paths = await putArtifacts({ worker: app.worker, call: fencedCall(contract) }, contract);
    expectError(await callback(contract, "complete", {}), 422, "invalid_transcoding_result");
    expect(await receipts()).toEqual([]);
    const body = { ...paths, media: { duration_seconds: 4 } };
    const done = await callback(contract, "complete", body);
    expect(done.body).toMatchObject({ id: made.job.id, status: "completed" });
    expect(await types()).toEqual(["video.asset.ready"]);
    app.advance(86_400_000);
    for (let i = 0; i < 3; i++) expect((await callback(contract, "complete", body)).body).toEqual(done.body);
    expectError(
      await callback(contract, "complete", { ...body, media: { duration_seconds: 5 } }),
      409,
      "attempt_conflict",
    );
    for (const name of ["heartbeat", "fail", "release"])
      expectError(await callback(contract, name), 409, "attempt_conflict", name);
    expect(await types()).toEqual([]);
  });

  test.each([
    ["fail", { code: "encode_failed", message: "It broke." }, ["video.job.failed", "video.job.queued"]],
    ["release", {}, ["video.job.queued"]],
  ])("of %s answers its repeat, also while the next attempt runs", async (name, body, events) => {
    const { contract } = await claimed();
    const first = await callback(contract, name, body);
    expect(first.body.status).toBe("queued");
    expect(await types()).toEqual(events);
    expect((await claim()).body.attempt_id).not.toBe(contract.attempt_id);
    await app.newEvents();
    const before = await state();
    expect((await callback(contract, name, body)).body).toEqual(first.body);
    expect(await state()).toEqual(before);
    expect(await types()).toEqual([]);
  });

  test("is one for ten concurrent equal requests", async () => {
    const { contract } = await claimed();
    const body = { code: "encode_failed", message: "It broke." };
    const answers = await Promise.all(Array.from({ length: 10 }, () => callback(contract, "fail", body)));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(await types()).toEqual(["video.job.failed", "video.job.queued"]);
  });

  test("heartbeats store their latest receipt and take effect each time", async () => {
    const { contract } = await claimed();
    for (const progress of [10, 10, 20]) {
      app.advance(40_000);
      expect((await callback(contract, "heartbeat", { progress })).body.cancel_requested).toBe(false);
    }
    expect(await receipts()).toHaveLength(1);
    await app.as({ admin: app.admin }).cancelJob(contract.job.id);
    expect((await callback(contract, "heartbeat", {})).body).toMatchObject({
      status: "canceled",
      cancel_requested: true,
    });
  });
});

/** The client of `putArtifacts` does not send a fence. */
const fencedCall =
  (contract: any): TestApp["call"] =>
  (method, path, options = {}) =>
    app.call(method, path, {
      ...options,
      headers: { ...options.headers, "x-svc-job-attempt-id": String(contract.attempt_id) },
    });
