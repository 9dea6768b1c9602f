import { sql } from "drizzle-orm";
import { beforeEach, describe, expect, test } from "vitest";
import { repairReservedBytes } from "#features/tenants/reserved-bytes.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased } from "#test/support/batches.ts";
import { expectError } from "#test/support/error.ts";

const GB = 1_000_000_000;
/** The free plan includes 5 GB. */
let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  await app.as({ admin: app.admin }).updateTenant(tenant.id, { plan_name: "free" });
});
const initiate = (bytes_expected: number, path = "initiate") =>
  app.call("POST", `/api/v1/uploads/${path}`, { key, body: { filename: "a.mp4", bytes_expected } });
const tus = (bytes: number) => {
  const metadata = `filename ${Buffer.from("a.mp4").toString("base64")}`;
  const headers = { "tus-resumable": "1.0.0", "upload-length": String(bytes), "upload-metadata": metadata };
  return app.call("POST", "/api/v1/uploads/tus", { key, headers });
};
const announced = async () => {
  const [row] = await app.opened.app.db.all<{ bytes: number }>(
    sql`select announced_bytes as bytes from tenants where id = ${tenant.id}`,
  );
  return row?.bytes;
};
const video_asset = {
  title: "Mine",
  input_status: "uploaded",
  playback_status: "draft",
  source_bytes: 0,
  duration_seconds: 1,
  provider: "external_serve",
  manifest_url: "https://cdn.example/a.m3u8",
};
const register = (storage_bytes: number) => {
  const source_key = `tenants/${tenant.id}/x`;
  return app.as(key).createAsset({ tenant_id: tenant.id, video_asset: { ...video_asset, storage_bytes, source_key } });
};

describe("bytes that open uploads have announced", () => {
  test("count against the plan, however an upload is created", async () => {
    expect((await initiate(4 * GB)).status).toBe(201);
    const refused = await initiate(GB + 1);
    expectError(refused, 403, "quota_exceeded");
    expect(refused.body.error).toContain("0 are used, 4000000000 are reserved by open uploads");
    expectError(await initiate(GB + 1, "initiate_multipart"), 403, "quota_exceeded");
    expectError(await tus(GB + 1), 403, "quota_exceeded");
    // A registered source is stored already: no upload is created.
    expectError(await register(5 * GB + 1), 403, "quota_exceeded");
    const batch = await leased(app, key);
    expectError(await batch.want("a.m4s", "", { bytes_expected: GB + 1 }), 403, "quota_exceeded");
    expect((await batch.want("a.m4s", "", { bytes_expected: GB })).status).toBe(201);
    expectError(await initiate(1), 403, "quota_exceeded");
    const url = { url: "https://example.com/a.mp4" };
    expectError(await app.as(key).uploadFromUrl(url), 403, "quota_exceeded");
    // Other tenants have their own counters.
    const other = await app.key((await app.tenant()).id);
    const body = { filename: "a.mp4", bytes_expected: 5 * GB };
    expect((await app.as(other).initiateUpload(body)).status).toBe(201);
  });

  test("are released once when an upload is aborted, expires, or its asset is deleted", async () => {
    const ids: { id: number; asset_id: number }[] = [];
    for (let n = 0; n < 5; n++) ids.push((await initiate(GB)).body);
    const [one, two, three] = ids as [(typeof ids)[0], (typeof ids)[0], (typeof ids)[0]];
    expect(await announced()).toBe(5 * GB);
    const multipart = async () => (await initiate(GB, "initiate_multipart")).status;
    expect(await multipart()).toBe(403);
    expect((await app.as(key).deleteAsset(one.asset_id)).status).toBe(204);
    expect(await announced()).toBe(4 * GB);
    expect((await app.as(key).deleteAsset(two.asset_id)).status).toBe(204);
    const begun = (await initiate(GB, "initiate_multipart")).body;
    expect(await announced()).toBe(4 * GB);
    for (let n = 0; n < 3; n++) await app.as(key).abortMultipartUpload(begun.id);
    expect(await announced()).toBe(3 * GB);
    app.advance(86_400_000 * 2);
    await app.runTask("expire-uploads");
    await app.runTask("expire-uploads");
    expect(await announced()).toBe(0);
    await app.as(key).deleteAsset(three.asset_id);
    expect(await announced()).toBe(0);
  });

  test("become stored bytes when an upload is completed, with the actual size", async () => {
    const { body } = await initiate(5 * GB);
    await app.call("PUT", body.upload_url, { raw: "video" });
    expectError(await initiate(1), 403, "quota_exceeded");
    const done = await app.as(key).completeUpload(body.id, { bytes_received: 5 });
    expect(done.status).toBe(200);
    expect(await announced()).toBe(0);
    expect((await initiate(5 * GB - 5)).status).toBe(201);
  });

  test("of an upload that an asset is registered on do not count twice", async () => {
    const { body } = await initiate(5 * GB);
    await app.call("PUT", body.upload_url, { raw: "video" });
    const asset = (await app.as(key).getAsset(body.asset_id)).body;
    const fields = { title: "Mine", input_status: "uploaded", playback_status: "draft", duration_seconds: 1 };
    const sizes = { source_bytes: 5, storage_bytes: 5, source_key: asset.source_key };
    const registered = { tenant_id: tenant.id, video_asset: { ...fields, ...sizes } };
    const made = await app.as(key).createAsset(registered);
    expect(made.status).toBe(201);
    expect(await announced()).toBe(0);
  });
});

test("bytes of a batch are released once when it ends, and when an object is replaced", async () => {
  const batch = await leased(app, key);
  const want = (name: string, bytes_expected: number) => batch.want(name, "", { bytes_expected });
  await want("a", 2 * GB);
  await want("b", 2 * GB);
  await want("a", 3 * GB);
  expect(await announced()).toBe(5 * GB);
  expectError(await initiate(1), 403, "quota_exceeded");
  for (let n = 0; n < 2; n++) await batch.ask("POST", "/cancel");
  expect(await announced()).toBe(0);
  app.advance(86_400_000 * 10);
  await app.runTask("sweep-batches");
  expect(await announced()).toBe(0);
  const second = await leased(app, key);
  await second.want("a", "", { bytes_expected: GB });
  app.advance(86_400_000 * 60);
  await app.runTask("expire-batches");
  expect(await announced()).toBe(0);
});

test("counters that differ from the rows are repaired", async () => {
  await initiate(GB);
  const batch = await leased(app, key);
  await batch.want("a", "", { bytes_expected: 2 * GB });
  expect(await repairReservedBytes(app.opened.app)).toBe(0);
  await app.opened.app.write(async (tx) => {
    await tx.run(sql`update ingest_batches set announced_bytes = 7`);
    await tx.run(sql`update tenants set announced_bytes = 9`);
  });
  expect(await repairReservedBytes(app.opened.app)).toBeGreaterThan(0);
  expect(await announced()).toBe(3 * GB);
  expect(await repairReservedBytes(app.opened.app)).toBe(0);
});
