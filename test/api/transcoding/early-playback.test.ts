import { beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import {
  completeEarly,
  completeRest,
  EARLY_MEDIA,
  EARLY_PLAN,
  type Early,
  publishedEarly,
} from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, uploaded } from "#test/support/flow.ts";
import { finish, nextTask } from "#test/support/tasks.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ lease_seconds: 60, max_attempts: 2 });
  key = await app.key((await app.tenant()).id);
});
const types = async () => (await app.newEvents()).map((event) => event.type);
const asset = async (id: number) => (await app.as(key).getAsset(id)).body;
const master = async (id: number) => {
  const { body } = await app.as(key).getPlayback(id);
  return app.call("GET", body.hls_url);
};
const bodyOf = ({ paths }: Pick<Early, "paths">) => ({ ...paths, media: EARLY_MEDIA });
const hasObject = async (path: unknown) => (await app.opened.app.objects?.head(path as string)) !== null;
const broken = { code: "encode_failed", message: "It broke.", retryable: true };

test("a worker that encodes jobs as a whole publishes nothing before the end", async () => {
  await uploaded(app, key, { early_playback: true });
  const { body: contract } = await next(app);
  expect(contract).toMatchObject({ early_playback: false });
  expect(contract.callbacks).not.toHaveProperty("publish_url");
});

test("complete renditions play, ready is emitted once, and the job continues to its end", async () => {
  const early = await publishedEarly(app, key, { isHeadLeft: true });
  expect((await types()).filter((type) => type.startsWith("video.asset."))).toEqual(["video.asset.ready"]);
  expect(await asset(early.id)).toMatchObject({ playback_status: "ready", duration_seconds: 100 });
  expect((await master(early.id)).text).toContain("low/playlist.m3u8");
  const again = await callback(app, early.head, "publish", bodyOf(early));
  expect(again.body).toMatchObject({ id: early.job, status: "running" });
  expect((await callback(app, early.head, "heartbeat", { progress: 60, stage: "encoding" })).status).toBe(200);
  expect(await asset(early.id)).toMatchObject({ playback_status: "ready", stage: "encoding" });
  await completeEarly(app, early.head);
  expectError(await callback(app, early.head, "publish", bodyOf(early)), 409, "stale_lease");
  await completeRest(app);
  expect(await types()).toEqual([]);
  const complete = { playback_status: "ready", encoding_status: "complete", progress: 100, stage: null };
  expect(await asset(early.id)).toMatchObject(complete);
});

test("it says that requested captions have no transcriber", async () => {
  const made = await uploaded(app, key, { early_playback: true, captions: ["de"] });
  const { body: plan } = await nextTask(app);
  await finish(app, plan, EARLY_PLAN);
  const { body: head } = await nextTask(app);
  const warning = { code: "track_skipped", message: "Track 3 was left out." };
  const body = bodyOf({ paths: await putArtifacts(app, head) });
  await app.newEvents();
  const published = { ...body, media: { ...body.media, warnings: [warning] } };
  expect((await callback(app, head, "publish", published)).status).toBe(200);
  const warnings = [
    warning,
    { code: "captions_not_configured", message: expect.stringMatching(/\(de\).*VODBOX_TRANSCRIBE/) },
  ];
  expect(await asset(made.asset.id)).toMatchObject({ playback_status: "ready", warnings });
  expect((await app.newEvents()).find(({ type }) => type === "video.asset.ready")?.data).toMatchObject({ warnings });
});

test("it has the same checks as a completion, and needs the lease", async () => {
  const made = await uploaded(app, key, { early_playback: true });
  const { body: plan } = await nextTask(app);
  await finish(app, plan, EARLY_PLAN);
  const { body: head } = await nextTask(app);
  const body = bodyOf({ paths: await putArtifacts(app, head) });
  await app.newEvents();
  for (const wrong of [
    { thumbnail_path: undefined },
    { manifest_path: `${head.outputs.prefix}none.m3u8` },
    { manifest_path: "tenants/2/assets/1/1-1/master.m3u8" },
  ])
    expectError(await callback(app, head, "publish", { ...body, ...wrong }), 422, "invalid_transcoding_result");
  app.advance(61_000);
  expectError(await callback(app, head, "publish", body), 409, "stale_lease");
  expect(await types()).toEqual([]);
  expect((await asset(made.asset.id)).playback_status).toBe("processing");
});

test("a failed attempt leaves it playable, until the next one publishes its own", async () => {
  const early = await publishedEarly(app, key, { isHeadLeft: true });
  await app.newEvents();
  await callback(app, early.head, "fail", broken);
  for (let failed: string[] = []; !failed.includes("video.job.failed"); failed = await types()) {
    app.advance(60_000);
    await callback(app, (await nextTask(app)).body, "fail", broken);
  }
  app.advance(600_000);
  await app.runTask("sweep-attempts");
  expect((await master(early.id)).status).toBe(200);
  await finish(app, (await nextTask(app)).body, EARLY_PLAN);
  const { body: head } = await nextTask(app);
  const paths = await putArtifacts(app, head);
  await callback(app, head, "publish", bodyOf({ paths }));
  expect((await types()).filter((type) => type === "video.asset.ready")).toEqual([]);
  expect((await asset(early.id)).manifest_path).toBe(paths.manifest_path);
  expect(await hasObject(early.paths.manifest_path)).toBe(true);
  app.advance(3_601_000);
  await app.runTask("sweep-objects");
  expect(await hasObject(early.paths.manifest_path)).toBe(false);
});

test("when no attempt is left the job has failed, and the asset keeps its media", async () => {
  const { id, head } = await publishedEarly(app, key, { isHeadLeft: true });
  await app.newEvents();
  await callback(app, head, "fail", { code: "source_corrupt", message: "Another file.", retryable: false });
  expect(await types()).toEqual(["video.job.failed"]);
  expect(await asset(id)).toMatchObject({ playback_status: "ready", error: { code: "source_corrupt" } });
  app.advance(600_000);
  await app.runTask("sweep-attempts");
  expect((await master(id)).status).toBe(200);
});
