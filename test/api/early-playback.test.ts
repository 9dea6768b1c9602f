import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "../support/app.ts";
import { expectError } from "../support/error.ts";
import { callback, next, putArtifacts, uploaded } from "../support/flow.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, max_attempts: 2 });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);
const asset = async (id: number) => (await app.call("GET", `/api/v1/assets/${id}`, { key })).body;
const master = async (id: number) => {
  const { body } = await app.call("GET", `/api/v1/playback/${id}`, { key });
  return app.call("GET", body.hls_url);
};
const publish = (contract: any, body: unknown) =>
  app.call("POST", contract.callbacks.publish_url, { worker: app.worker, lease: contract.lease.token, body });

async function early(fields: Record<string, unknown> = {}) {
  const made = await uploaded(app, key, { early_playback: true, ...fields });
  const { body: contract } = await next(app);
  const paths = await putArtifacts(app, contract);
  await app.newEvents();
  return { made, contract, paths, whole: { ...paths, media: { duration_seconds: 4, width: 640, height: 360 } } };
}

test("a worker that encodes jobs as a whole is not to publish before the end", async () => {
  await uploaded(app, key, { early_playback: true });
  expect((await next(app)).body.early_playback).toBe(false);
});

test("complete renditions play, ready is emitted once, and the job continues to its end", async () => {
  const { made, contract, whole } = await early();
  const shown = await publish(contract, whole);
  expect(shown.body).toMatchObject({ id: made.job.id, status: "running" });
  expect(await types()).toEqual(["video.asset.ready"]);
  expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", duration_seconds: 4 });
  expect((await master(made.asset.id)).text).toContain("low/playlist.m3u8");
  // Published again with more renditions: no second event.
  expect((await publish(contract, whole)).status).toBe(200);
  expect((await callback(app, contract, "heartbeat", { progress: 60, stage: "encoding" })).status).toBe(200);
  expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", progress: 60, stage: "encoding" });
  const done = await callback(app, contract, "complete", whole);
  expect(done.body.status).toBe("completed");
  expect(await types()).toEqual([]);
  expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", progress: 100, stage: null });
  expectError(await publish(contract, whole), 409, "stale_lease");
});

test("it has the same checks as a completion, and needs the lease", async () => {
  const { made, contract, whole } = await early();
  for (const wrong of [
    { thumbnail_path: undefined },
    { manifest_path: `${contract.outputs.prefix}none.m3u8` },
    { manifest_path: "tenants/2/assets/1/1-1/master.m3u8" },
  ])
    expectError(await publish(contract, { ...whole, ...wrong }), 422, "invalid_transcoding_result");
  app.advance(61_000);
  expectError(await publish(contract, whole), 409, "stale_lease");
  expect(await types()).toEqual([]);
  expect((await asset(made.asset.id)).playback_status).toBe("processing");
});

test("a failed attempt leaves it playable, until the next one publishes its own", async () => {
  const { made, contract, whole } = await early();
  await publish(contract, whole);
  app.advance(61_000);
  await app.runTask("recover-leases");
  expect(await types()).toEqual(["video.asset.ready", "video.job.failed", "video.job.queued"]);
  app.advance(600_000);
  await app.runTask("sweep-attempts");
  expect((await master(made.asset.id)).status).toBe(200);
  const { body: second } = await next(app);
  const paths = await putArtifacts(app, second);
  await callback(app, second, "complete", { ...paths, media: { duration_seconds: 4 } });
  expect((await types()).filter((type) => type === "video.asset.ready")).toEqual([]);
  expect((await asset(made.asset.id)).manifest_path).toBe(paths.manifest_path);
  expect(await app.opened.app.objects?.head(whole.manifest_path)).not.toBeNull();
  app.advance(3_601_000);
  await app.runTask("sweep-objects");
  expect(await app.opened.app.objects?.head(whole.manifest_path)).toBeNull();
});

test("when no attempt is left the job has failed, and the asset keeps its media", async () => {
  const { made, contract, whole } = await early();
  await publish(contract, whole);
  await app.newEvents();
  await callback(app, contract, "fail", { code: "encode_failed", message: "It broke.", retryable: false });
  expect(await types()).toEqual(["video.job.failed"]);
  expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", error: { code: "encode_failed" } });
  app.advance(600_000);
  await app.runTask("sweep-attempts");
  expect((await master(made.asset.id)).status).toBe(200);
});
