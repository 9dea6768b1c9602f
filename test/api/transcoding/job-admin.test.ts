import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";

const path = "/api/v1/transcoding_jobs";
let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const order = (verb: "cancel" | "retry", id: number) => app.call("POST", `${path}/${id}/${verb}`, { admin: app.admin });
const retryAsset = (id: number) => app.as(key).retryAsset(id);
const asset = async (id: number) => (await app.as(key).getAsset(id)).body;
const events = async () => (await app.newEvents()).map(({ type, data }) => [type, data.asset_id]);
const hopeless = { code: "input_invalid", message: "No video.", retryable: false };

describe("jobs", () => {
  test("are listed newest first, filtered, page by page, to their owners", async () => {
    const ids: number[] = [];
    for (let i = 0; i < 4; i++) ids.unshift((await uploaded(app, key)).job.id);
    await next(app);
    const other = await app.tenant();
    const theirs = (await uploaded(app, await app.key(other.id))).job.id;
    const reader = await app.key(tenant.id, ["billing:write"]);
    const list = async (query = "", options: Record<string, string> = { key: reader }) =>
      (await app.call("GET", `${path}${query}`, options)).body.map((job: { id: number }) => job.id);
    expect(await list()).toEqual(ids);
    expect(await list("?status=running")).toEqual([ids.at(-1)]);
    expect(await list("?status=queued")).toEqual(ids.slice(0, -1));
    const [job] = (await app.as(key).listJobs({ limit: 1 })).body;
    expect(await list(`?asset_id=${job.asset_id}`)).toEqual([job.id]);
    expect(await list(`?tenant_id=${other.id}`)).toEqual([]);
    expect(await list("", { admin: app.admin })).toEqual([theirs, ...ids]);
    expect(await list(`?tenant_id=${other.id}`, { admin: app.admin })).toEqual([theirs]);
    const first = await app.as(key).listJobs({ limit: 3 });
    const link = /^<([^>]+)>/.exec(first.headers.get("link") ?? "")?.[1] as string;
    expect((await app.call("GET", link, { key })).body.map((each: any) => each.id)).toEqual(ids.slice(3));
    expect((await app.as(reader).getJob(job.id)).body).toEqual({
      ...job,
      tasks: { total: 0, queued: 0, running: 0, completed: 0, failed: 0 },
      uncuttable: null,
    });
    expectError(await app.as(key).getJob(theirs), 404, "not_found");
    expectError(await app.as(key).listJobs({ status: "done" }), 422, "validation_failed");
  });
});

describe("a canceled job", () => {
  test("that was queued is leased to no worker, and its asset is errored", async () => {
    const { asset: made, job } = await uploaded(app, key);
    await app.newEvents();
    const { status, body } = await order("cancel", job.id);
    expect([status, body.status, body.finished_at !== null]).toEqual([200, "canceled", true]);
    expect(await asset(made.id)).toMatchObject({
      playback_status: "errored",
      stage: null,
      error: { code: "canceled" },
    });
    expect(await events()).toEqual([["video.asset.errored", String(made.id)]]);
    expect((await next(app)).status).toBe(204);
    expect((await order("cancel", job.id)).body).toEqual(body);
    expect(await events()).toEqual([]);
  });

  test("that was running notifies its worker, whose late calls have no effect", async () => {
    const { asset: made, job } = await uploaded(app, key);
    const { body: contract } = await next(app);
    const paths = await putArtifacts(app, contract);
    await app.newEvents();
    expect((await order("cancel", job.id)).body).toMatchObject({ status: "canceled", lease_expires_at: null });
    const beat = await callback(app, contract, "heartbeat", { progress: 50, stage: "encoding" });
    expect([beat.status, beat.body]).toEqual([
      200,
      { status: "canceled", lease_expires_at: null, cancel_requested: true },
    ]);
    expectError(await callback(app, contract, "complete", paths), 409, "stale_lease");
    for (const name of ["fail", "release"] as const)
      expectError(await callback(app, contract, name), 409, "stale_lease", name);
    const wrong = { ...contract, lease: { ...contract.lease, token: "x".repeat(43) } };
    expectError(await callback(app, wrong, "heartbeat"), 409, "stale_lease");
    expect(await asset(made.id)).toMatchObject({ playback_status: "errored", progress: 0, manifest_path: null });
    expect(await events()).toEqual([["video.asset.errored", String(made.id)]]);
    app.advance(600_000);
    await app.runTask("recover-leases");
    expect((await app.as(key).getJob(job.id)).body.status).toBe("canceled");
    await app.runTask("sweep-attempts");
    expect((await app.opened.app.objects?.list(`tenants/${tenant.id}/assets/`))?.objects).toEqual([]);
    // After the retry another worker has it: the first one stays fenced.
    expect((await order("retry", job.id)).body).toMatchObject({ status: "queued", attempt: 0, error: null });
    expectError(await callback(app, contract, "heartbeat"), 409, "stale_lease");
    const { body: second } = await next(app);
    expect(second.job.id).toBe(job.id);
    expectError(await callback(app, contract, "heartbeat"), 409, "stale_lease");
    expect((await callback(app, second, "complete", await putArtifacts(app, second))).status).toBe(200);
    expect(await events()).toEqual(
      ["video.job.queued", "video.job.started", "video.asset.ready"].map((type) => [type, String(made.id)]),
    );
  });

  test("leaves a ready asset unchanged; a job that has ended cannot be canceled", async () => {
    const { asset: made, job } = await readyAsset(app, key);
    for (const verb of ["cancel", "retry"] as const) expectError(await order(verb, job.id), 409, "job_conflict");
    expectError(await retryAsset(made.id), 409, "asset_conflict");
    const { manifest_path, source_key } = await asset(made.id);
    const video_asset = {
      title: "x",
      input_status: "uploaded",
      playback_status: "ready",
      manifest_path,
      source_key,
      source_bytes: 1,
      storage_bytes: 1,
      duration_seconds: 1,
    };
    const again = (await app.as(key).createAsset({ tenant_id: tenant.id, video_asset })).body;
    await app.newEvents();
    expect((await order("cancel", again.transcoding_job.id)).status).toBe(200);
    expect(await asset(again.asset.id)).toMatchObject({ playback_status: "ready", error: { code: "canceled" } });
    expect(await events()).toEqual([]);
  });

  test("and retried while it is completed ends in one way", async () => {
    const { job } = await uploaded(app, key);
    const { body: contract } = await next(app);
    const paths = await putArtifacts(app, contract);
    const [canceled, completed] = await Promise.all([
      order("cancel", job.id),
      callback(app, contract, "complete", paths),
    ]);
    const { status } = (await app.as(key).getJob(job.id)).body;
    expect([
      [200, 409, "canceled"],
      [409, 200, "completed"],
    ]).toContainEqual([canceled.status, completed.status, status]);
  });
});

describe("an errored asset", () => {
  test("is retried by its tenant, with all attempts", async () => {
    const { asset: made, job } = await uploaded(app, key);
    expectError(await retryAsset(made.id), 409, "asset_conflict");
    await callback(app, (await next(app)).body, "fail", hopeless);
    expect((await asset(made.id)).playback_status).toBe("errored");
    await app.newEvents();
    const { status, body } = await retryAsset(made.id);
    expect(status).toBe(200);
    expect(body.asset).toMatchObject({ id: made.id, playback_status: "processing", stage: "queued", error: null });
    expect(body.transcoding_job).toMatchObject({ id: job.id, status: "queued", attempt: 0, error: null });
    expect(await app.newEvents()).toMatchObject([{ type: "video.job.queued", data: { attempt: 0, worker_id: null } }]);
    expectError(await retryAsset(made.id), 409, "asset_conflict");
    await callback(app, (await next(app)).body, "fail", hopeless);
    expect((await order("retry", job.id)).body.status).toBe("queued");
    await order("cancel", job.id);
    expect((await retryAsset(made.id)).body.asset.playback_status).toBe("processing");
  });

  test("is retried once by concurrent requests", async () => {
    const { asset: made } = await uploaded(app, key);
    await callback(app, (await next(app)).body, "fail", hopeless);
    await app.newEvents();
    const answers = await Promise.all([1, 2, 3].map(() => retryAsset(made.id)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409, 409]);
    expect(await events()).toEqual([["video.job.queued", String(made.id)]]);
  });

  test("of another tenant cannot be retried", async () => {
    const { asset: made } = await uploaded(app, key);
    const foreign = await app.key((await app.tenant()).id);
    expectError(await app.as(foreign).retryAsset(made.id), 404, "not_found");
  });
});
