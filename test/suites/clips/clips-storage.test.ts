import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { takeHold } from "#platform/http/removal-hold.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import {
  clipOf,
  createClip,
  downloaded,
  encodedAgain,
  FPS,
  film,
  filmAsset,
  frameHashes,
} from "#test/support/clips.ts";
import { databaseBytes } from "#test/support/database-bytes.ts";
import { checkup } from "#test/support/doctor.ts";
import { expectError } from "#test/support/error.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";

let files: Awaited<ReturnType<typeof film>>;
let hashes: string[];
let app: TestApp;
let tenantId: number;
let key: string;
let parent: Awaited<ReturnType<typeof filmAsset>>;

beforeAll(async () => {
  files = await film();
});
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
  parent = await filmAsset(app, key, files, { playback_policy: "public" });
  hashes ??= await framesOf(parent.id);
});
afterEach(() => app.close());

async function framesOf(id: number): Promise<string[]> {
  const { body } = await app.as(key).getPlayback(id);
  return frameHashes(await downloaded(app, body.hls_url));
}
const expectPlays = async (id: number, from: number, to: number) =>
  expect(await framesOf(id)).toEqual(hashes.slice(from * FPS, to * FPS));
const stored = async () => (await app.opened.app.objects?.list("tenants/"))?.objects ?? [];
const segments = async () => (await stored()).filter(({ key }) => key.endsWith(".m4s")).length;
const remove = async (id: number) => expect((await app.as(key).deleteAsset(id)).status).toBe(204);

/** As the scheduled task does, when all workers have noticed. */
async function collect(): Promise<void> {
  app.advance(3_600_000);
  await app.runTask("sweep-objects");
}

/** The tenant counts exactly what is in storage, the assets count it once, and the doctor finds no fault. */
async function expectCounted(): Promise<void> {
  const bytes = (await stored()).reduce((sum, one) => sum + one.bytes, 0);
  const { body: assets } = await app.as(key).listAssets();
  const sum = assets.reduce((total: number, asset: { storage_bytes: number }) => total + asset.storage_bytes, 0);
  const { body } = await app.as(key).listTenants();
  expect([sum, body[0].storage_bytes]).toEqual([bytes, bytes + (await databaseBytes(app, body[0].id))]);
  app.advance(25 * 3_600_000);
  const { of } = await checkup(app);
  for (const check of ["missing", "unreferenced"]) expect(of(check)).toMatchObject({ ok: true, fixed: 0 });
}

test("a clip outlives its parent, which leaves only what the clip plays", async () => {
  const clip = await clipOf(app, key, parent.id, 4, 12);
  await expectCounted();
  const before = await segments();
  await remove(parent.id);
  await collect();
  expect(await segments()).toBeLessThan(before);
  await expectPlays(clip.id, 4, 12);
  const { body } = await app.as(key).getAsset(clip.id);
  expect(body.parent_asset_id).toBeNull();
  await expectCounted();
  await remove(clip.id);
  await collect();
  expect(await stored()).toEqual([]);
  await expectCounted();
});

nightly("several clips, and clips of clips, are deleted in any order", async () => {
  const early = await clipOf(app, key, parent.id, 0, 8);
  const late = await clipOf(app, key, parent.id, 4, 18);
  const inner = await clipOf(app, key, late.id, 8, 14);
  await expectCounted();
  await remove(late.id);
  await collect();
  await expectCounted();
  await remove(parent.id);
  await collect();
  await expectCounted();
  await expectPlays(early.id, 0, 8);
  await expectPlays(inner.id, 12, 18);
  await remove(early.id);
  await collect();
  await expectCounted();
  await expectPlays(inner.id, 12, 18);
  const last = await clipOf(app, key, inner.id, 0, 2);
  await remove(inner.id);
  await collect();
  await expectPlays(last.id, 12, 16);
  await expectCounted();
  await remove(last.id);
  await collect();
  expect(await stored()).toEqual([]);
});

test("a clip plays on when its parent is encoded again", async () => {
  const clip = await clipOf(app, key, parent.id, 4, 8);
  const again = await encodedAgain(app, key, parent.id, files);
  expect(again.prefix).not.toBe(parent.prefix);
  await collect();
  await expectPlays(clip.id, 4, 8);
  await expectPlays(parent.id, 0, 18);
  await expectCounted();
  await remove(parent.id);
  await collect();
  await expectPlays(clip.id, 4, 8);
  await remove(clip.id);
  await collect();
  expect(await stored()).toEqual([]);
});

nightly("parent and clip are published and expire independently", async () => {
  const clip = await clipOf(app, key, parent.id, 4, 8);
  const patch = (id: number, video_asset: unknown) => app.as(key).unchecked.updateAsset(id, { video_asset });
  const status = async (id: string) => (await app.call("GET", `/media/${id}/master.m3u8`)).status;
  await patch(parent.id, { playback_policy: "signed" });
  expect([await status(parent.external_id), await status(clip.external_id)]).toEqual([403, 200]);
  await patch(parent.id, { playback_policy: "public" });
  await patch(clip.id, { playback_policy: "signed" });
  expect([await status(parent.external_id), await status(clip.external_id)]).toEqual([200, 403]);
  await patch(clip.id, { playback_policy: "public" });
  await patch(parent.id, { expires_at: new Date(Date.now() + 60_000).toISOString() });
  app.advance(120_000);
  await app.runTask("expire-assets");
  await collect();
  expect([await status(parent.external_id), await status(clip.external_id)]).toEqual([404, 200]);
  await expectPlays(clip.id, 4, 8);
  await expectCounted();
});

test("subtitles and a chosen poster of clip and parent are their own", async () => {
  await subtitled(app, key, parent.id, {}, "WEBVTT\n\n00:00.000 --> 00:18.000\nWords\n");
  const clip = await clipOf(app, key, parent.id, 4, 8);
  const poster = await app.as(key).setPoster(clip.id, { time_seconds: 1 });
  expect(poster.status, poster.text).toBe(200);
  await expectCounted();
  await remove(parent.id);
  await collect();
  const { body } = await app.as(key).getPlayback(clip.id);
  for (const url of [body.thumbnail_url, body.subtitles[0].url])
    expect((await app.opened.server.fetch(new Request(url))).status).toBe(200);
  await expectCounted();
});

test("while a backup copies objects, nothing is deleted; afterwards what no clip plays is", async () => {
  const clip = await clipOf(app, key, parent.id, 4, 8);
  const before = await segments();
  await takeHold(app.opened.app);
  await remove(parent.id);
  await app.runTask("sweep-objects");
  expect(await segments()).toBe(before);
  await expectPlays(clip.id, 4, 8);
  await collect();
  expect(await segments()).toBeLessThan(before);
  await expectPlays(clip.id, 4, 8);
  await expectCounted();
});

test("the quota counts shared bytes once", async () => {
  await app.plan(tenantId, "free");
  const { body: assets } = await app.as(key).getAsset(parent.id);
  const clips = await Promise.all(Array.from({ length: 5 }, () => clipOf(app, key, parent.id, 0, 18)));
  for (const clip of clips) expect(clip.storage_bytes).toBeLessThan(assets.storage_bytes / 10);
  await expectCounted();
});

test("a clip of media that are deleted meanwhile is not created, and leaves nothing", async () => {
  const [created, removed] = await Promise.all([
    createClip(app, key, parent.id, { start_seconds: 0, end_seconds: 4 }),
    app.as(key).deleteAsset(parent.id),
  ]);
  expect(removed.status).toBe(204);
  if (created.status === 201) {
    await collect();
    await expectPlays(created.body.id, 0, 4);
    await remove(created.body.id);
  } else expectError(created, created.status, created.status === 404 ? "not_found" : "clip_not_possible");
  await collect();
  expect(await stored()).toEqual([]);
});
