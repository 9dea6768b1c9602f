import { beforeEach, expect, test } from "vitest";
import type { SwitchingStore } from "#storage/objects/switching.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { checkup } from "#test/support/doctor.ts";
import { publishedEarly } from "#test/support/early.ts";
import { expectError } from "#test/support/error.ts";
import { delivered } from "#test/support/films.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
let tenantId: number;
beforeEach(async () => {
  app = await testApp();
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
});
const drop = (id: number, as = key) => app.as(as).deleteSource(id);
const get = async (id: number) => (await app.as(key).getAsset(id)).body;
const ownTenant = async () => (await app.as(key).listTenants()).body[0];
const usage = async () => (await ownTenant()).storage_bytes;
const isStored = async (name: string) => (await (app.opened.app.objects as SwitchingStore).head(name)) !== null;
async function collect() {
  app.advance(61_000);
  await app.runTask("sweep-objects");
}

test("the source of a ready asset is deleted, its bytes are freed, and the asset plays on", async () => {
  const { asset, upload } = await readyAsset(app, key, { playback_policy: "public" });
  const before = await get(asset.id);
  const used = await usage();
  const { status, body } = await drop(asset.id);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    source_key: "",
    source_bytes: before.source_bytes,
    source_sha256: before.source_sha256,
    storage_bytes: before.storage_bytes - before.source_bytes,
    playback_status: "ready",
    input_status: "uploaded",
  });
  expect(body.source_deleted_at).toMatch(/^\d{4}-/);
  expect(used - (await usage())).toBe(before.source_bytes);
  // Again: the same, and nothing is counted twice.
  const { updated_at: _, ...same } = (await drop(asset.id)).body;
  expect(body).toMatchObject(same);
  expect(used - (await usage())).toBe(before.source_bytes);
  await collect();
  expect(await isStored(before.source_key)).toBe(false);
  expect((await checkup(app)).of("missing").ok).toBe(true);

  expect((await app.call("GET", `/media/${asset.id}/master.m3u8`)).status).toBe(200);
  expectError(await app.as(key).getDownload(asset.id), 410, "source_deleted");
  expectError(await app.as(key).retryAsset(asset.id), 409, "asset_conflict");
  const job = (await app.as(key).listJobs({ asset_id: asset.id })).body[0];
  expectError(await app.as({ admin: app.admin }).retryJob(job.id), 409, "job_conflict");
  const again = { body: { bytes_received: before.source_bytes }, key };
  expect((await app.call("POST", `/api/v1/uploads/${upload.id}/complete`, again)).status).toBe(200);
  expect(
    (await app.as(key).listDuplicates({ filename: before.original_filename, bytes: before.source_bytes })).body
      .duplicates,
  ).toMatchObject([{ asset_id: asset.id }]);
  expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
  expect(await usage()).toBe(0);
});

test("a source that is still needed, or is not the asset's own, is kept", async () => {
  const draft = await app.as(key).initiateUpload({ filename: "x.mp4", bytes_expected: 1 });
  expectError(await drop(draft.body.asset_id), 409, "asset_conflict");
  const { asset: queued } = await uploaded(app, key);
  expectError(await drop(queued.id), 409, "asset_conflict");
  const asset = await publishedEarly(app, key, { priority: 100, isHeadLeft: true });
  // It plays, but is not completely encoded.
  expect((await get(asset.id)).playback_status).toBe("ready");
  expectError(await drop(asset.id), 409, "asset_conflict");
  await callback(app, asset.head, "fail", { code: "x", message: "y", retryable: false });
  expect((await get(asset.id)).playback_status).toBe("ready");
  expectError(await drop(asset.id), 409, "asset_conflict");
  expect(await isStored((await get(asset.id)).source_key)).toBe(true);

  const other = await app.key((await app.tenant()).id);
  expectError(await drop(asset.id, other), 404, "not_found");
  expect((await drop(asset.id, await app.key(tenantId, ["assets:read"]))).status).toBe(403);
});

test("a source that two assets share is deleted with the last one", async () => {
  const { asset } = await readyAsset(app, key);
  const { source_key, source_bytes } = await get(asset.id);
  const video_asset = {
    title: "Same",
    input_status: "uploaded",
    playback_status: "draft",
    source_key,
    source_bytes,
    storage_bytes: source_bytes,
    duration_seconds: 0,
  };
  const second = await app.as(key).createAsset({ tenant_id: tenantId, video_asset });
  expect(second.status).toBe(201);
  expect((await drop(asset.id)).status).toBe(200);
  await collect();
  expect(await isStored(source_key)).toBe(true);
  const { body: contract } = await next(app);
  const made = { ...(await putArtifacts(app, contract)), media: { duration_seconds: 4 } };
  expect((await callback(app, contract, "complete", made)).status).toBe(200);
  expect((await drop(second.body.asset.id)).status).toBe(200);
  await collect();
  expect(await isStored(source_key)).toBe(false);
});

test("the source of a batch is deleted without its media", async () => {
  const { lone } = await delivered(app, key, {
    files: {
      "lone/master.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=90000\nlow.m3u8\n",
      "lone/low.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\n1.ts\n#EXT-X-ENDLIST\n",
      "lone/1.ts": "video",
      "lone/source.mp4": "source",
    },
    assets: { lone: { source_key: "lone/source.mp4" } },
  });
  const { source_key, storage_bytes, source_bytes } = await get(lone.id);
  expect([await isStored(source_key), source_bytes]).toEqual([true, 6]);
  expect((await drop(lone.id)).body.storage_bytes).toBe(storage_bytes - 6);
  await collect();
  expect(await isStored(source_key)).toBe(false);
  expect((await app.call("GET", `/media/${lone.id}/master.m3u8`)).status).toBe(200);
  expect((await checkup(app)).of("missing").ok).toBe(true);
});

test("a tenant's storage is divided into sources and what was encoded from them", async () => {
  const first = await readyAsset(app, key);
  const second = await readyAsset(app, key);
  const one = await get(first.asset.id);
  const two = await get(second.asset.id);
  const divided = async () => {
    const { storage_bytes, source_bytes } = await ownTenant();
    return [storage_bytes, source_bytes];
  };
  expect(one.storage_bytes).toBeGreaterThan(one.source_bytes);
  expect(await divided()).toEqual([one.storage_bytes + two.storage_bytes, one.source_bytes + two.source_bytes]);
  await drop(one.id);
  expect(await divided()).toEqual([one.storage_bytes - one.source_bytes + two.storage_bytes, two.source_bytes]);
  await app.as(key).deleteAsset(two.id);
  expect(await divided()).toEqual([one.storage_bytes - one.source_bytes, 0]);
  await app.as(key).deleteAsset(one.id);
  expect(await divided()).toEqual([0, 0]);
});

test("declared sizes beyond what a number can hold do not make a tenant unreadable", async () => {
  await app.plan(tenantId, "enterprise");
  const most = Number.MAX_SAFE_INTEGER;
  const made: number[] = [];
  for (let count = 0; count < 3; count++) {
    const video_asset = {
      title: "Huge",
      input_status: "uploaded",
      playback_status: "draft",
      duration_seconds: 1,
      source_bytes: most,
      storage_bytes: most,
      original_filename: "a.mp4",
      source_key: `tenants/${tenantId}/sources/huge-${count}.mp4`,
    };
    const { status, body } = await app.as(key).createAsset({ tenant_id: tenantId, video_asset });
    expect(status).toBe(201);
    made.push(body.asset.id);
  }
  expect((await ownTenant()).source_bytes).toBe(most);
  for (const id of made) await app.as(key).deleteAsset(id);
  expect((await ownTenant()).source_bytes).toBe(0);
});
