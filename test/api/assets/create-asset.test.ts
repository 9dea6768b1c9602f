import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";

const path = "/api/v1/assets";
let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const required = (fields: Record<string, unknown> = {}) => ({
  title: "Holiday",
  input_status: "pending",
  playback_status: "draft",
  source_bytes: 18,
  storage_bytes: 18,
  duration_seconds: 1.5,
  source_key: `tenants/${tenant.id}/sources/a.mp4`,
  ...fields,
});
const create = (fields: Record<string, unknown> = {}, options: Record<string, unknown> = {}) =>
  app.call("POST", path, { key, body: { tenant_id: tenant.id, video_asset: required(fields) }, ...options });
const types = async () => (await app.newEvents()).map((event) => event.type);

describe("a registered asset", () => {
  test("is as declared, has a job, and a contract without a lease", async () => {
    const folder = await app.as(key).createCollection({ tenant_id: tenant.id, collection: { name: "A", slug: "a" } });
    const more = {
      description: "Süd",
      collection_id: folder.body.id,
      external_id: "holiday-1",
      playback_policy: "public",
      tags: { year: 2026 },
      original_filename: "a.mp4",
      relative_path: "2026/a.mp4",
      source_sha256: "AB".repeat(32),
    };
    const answer = await create(more);
    expect(answer.status, answer.text).toBe(201);
    const { asset, transcoding_job, worker_contract, ...others } = answer.body;
    expect(others).toEqual({});
    expect(asset).toMatchObject({ ...required(), ...more, source_sha256: "ab".repeat(32), tenant_id: tenant.id });
    expect(asset).toMatchObject({ provider: "managed", manifest_path: null, progress: 0, error: null });
    expect(transcoding_job).toMatchObject({ asset_id: asset.id, status: "queued", attempt: 0 });
    expect(worker_contract).toMatchObject({
      schema_version: 1,
      job: { id: transcoding_job.id, asset_id: asset.id },
      lease: null,
      source: { bytes: 18, local_path: null },
    });
    expect(await app.newEvents()).toMatchObject([
      {
        type: "video.job.queued",
        tenantId: tenant.id,
        data: { job_id: transcoding_job.id, asset_id: String(asset.id) },
      },
    ]);
    expect((await app.as(key).getAsset(asset.id)).body).toEqual(asset);
  });

  test("is encoded by its job like any other, from the source in storage", async () => {
    const { asset: first } = await uploaded(app, key);
    await next(app);
    const { asset } = (await create({ source_key: first.source_key, source_bytes: 5, storage_bytes: 0 })).body;
    await app.newEvents();
    const { body: contract } = await next(app);
    expect(contract.job.asset_id).toBe(asset.id);
    // A worker rejects a source of another size, so a wrong declared size must be replaced.
    expect(contract.source.bytes).toBe(first.source_bytes);
    expect((await app.call("GET", contract.source.url)).text).toBe("not really a video");
    expect((await app.as(key).getAsset(asset.id)).body.playback_status).toBe("processing");
    const paths = await putArtifacts(app, contract);
    expect((await callback(app, contract, "complete", paths)).status).toBe(200);
    expect((await app.as(key).getAsset(asset.id)).body).toMatchObject({
      playback_status: "ready",
      input_status: "uploaded",
    });
    expect(await types()).toEqual(["video.job.started", "video.asset.ready"]);
  });

  test("counts the bytes in storage, whatever was declared", async () => {
    const held = async () => (await app.as(key).listTenants()).body[0].storage_bytes;
    const { asset: first } = await uploaded(app, key);
    const told = async (source_bytes: number, storage_bytes: number, fields = {}) => {
      const before = await held();
      const { body } = await create({ source_key: first.source_key, source_bytes, storage_bytes, ...fields });
      const { asset, worker_contract } = body;
      if (worker_contract) expect(worker_contract.source.bytes).toBe(18);
      return [asset.source_bytes, asset.storage_bytes, (await held()) - before];
    };
    expect(await told(0, 0)).toEqual([18, 18, 18]);
    expect(await told(1_000, 1_000)).toEqual([18, 18, 18]);
    expect(await told(1_000, 0)).toEqual([18, 18, 18]);
    expect(await told(18, 118)).toEqual([18, 118, 118]);
    // The customer's own reference, even where it looks like one of our keys.
    const elsewhere = { provider: "external_serve", manifest_url: "https://cdn.example/a.m3u8" };
    expect(await told(0, 0, elsewhere)).toEqual([0, 0, 0]);
    // A source that arrives later is counted when a worker finds it.
    const source_key = `tenants/${tenant.id}/sources/later.mp4`;
    const { asset: later } = (await create({ source_key, source_bytes: 0, storage_bytes: 5 })).body;
    const before = await held();
    await app.opened.app.objects?.put(source_key, Buffer.from("x".repeat(30)));
    let contract: any;
    do contract = (await next(app)).body;
    while (contract && contract.job.asset_id !== later.id);
    expect(contract.source.bytes).toBe(30);
    expect((await app.as(key).getAsset(later.id)).body).toMatchObject({ source_bytes: 30, storage_bytes: 35 });
    expect((await held()) - before).toBe(30);
  });

  test("whose source exceeds the plan's bytes is refused, whatever size was declared", async () => {
    await app.as({ admin: app.admin }).updateTenant(tenant.id, { plan_name: "free" });
    const room = { source_bytes: 0, storage_bytes: 4_999_999_990 };
    expect((await create({ ...room, source_key: `tenants/${tenant.id}/sources/none.mp4` })).status).toBe(201);
    const source_key = `tenants/${tenant.id}/sources/held.mp4`;
    await app.opened.app.objects?.put(source_key, Buffer.from("x".repeat(18)));
    expectError(await create({ source_key, source_bytes: 0, storage_bytes: 0 }), 403, "quota_exceeded");
    expect((await app.as(key).listAssets()).body).toHaveLength(1);
  });

  test("counts bytes that arrive at a pending upload's URL after the registration, once the upload has ended", async () => {
    const body = { filename: "a.mp4", bytes_expected: 18 };
    const { asset_id, upload_url, upload_headers } = (await app.as(key).initiateUpload(body)).body;
    const source_key = (await app.as(key).getAsset(asset_id)).body.source_key;
    const { asset } = (await create({ source_key, source_bytes: 0, storage_bytes: 0 })).body;
    expect((await app.call("PUT", upload_url, { raw: "x".repeat(18), headers: upload_headers })).status).toBe(200);
    app.advance(2 * 86_400_000);
    await app.runTask("expire-uploads");
    expect((await app.as(key).getAsset(asset.id)).body).toMatchObject({ source_bytes: 18, storage_bytes: 18 });
    expect((await app.as(key).listTenants()).body[0].storage_bytes).toBe(18);
  });

  test("takes over the source of a pending upload: it is counted once, and outlives the upload", async () => {
    const begin = await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 18 });
    const { id, asset_id, upload_url, upload_headers } = begin.body;
    const source_key = (await app.as(key).getAsset(asset_id)).body.source_key;
    const put = () => app.call("PUT", upload_url, { raw: "x".repeat(18), headers: upload_headers });
    expect((await put()).status).toBe(200);
    const { asset } = (await create({ source_key, source_bytes: 0, storage_bytes: 0 })).body;
    expectError(await put(), 403, "address_revoked");
    const complete = { key, body: { bytes_received: 18 } };
    expectError(await app.call("POST", `/api/v1/uploads/${id}/complete`, complete), 409, "upload_conflict");
    expect((await app.as(key).listTenants()).body[0].storage_bytes).toBe(18);
    app.advance(2 * 86_400_000);
    await app.runTask("expire-uploads");
    await app.runTask("sweep-objects");
    const objects = async () => (await app.opened.app.objects?.list(""))?.objects.map((one) => one.key);
    expect(await objects()).toEqual([source_key]);
    // No one else keeps the bytes after they are no longer counted.
    await app.as(key).deleteAsset(asset.id);
    expect(await objects()).toEqual([]);
    expect((await app.as(key).listTenants()).body[0].storage_bytes).toBe(0);
  });

  test.for(
    ["pending", "uploaded", "failed"].flatMap((a) => ["draft", "processing", "ready", "errored"].map((b) => [a, b])),
  )("keeps the statuses %s and %s", async ([input_status, playback_status]) => {
    const { status, body } = await create({ input_status, playback_status });
    expect([status, body.asset.input_status, body.asset.playback_status]).toEqual([201, input_status, playback_status]);
    expect(body.transcoding_job.status).toBe("queued");
    expect(await types()).toEqual(["video.job.queued"]);
  });

  test("that is ready plays the media next to its manifest, also during a re-encode, and these are kept", async () => {
    const { asset: first } = await readyAsset(app, key, { playback_policy: "public" });
    const { manifest_path } = (await app.as(key).getAsset(first.id)).body;
    const fields = { playback_status: "ready", playback_policy: "public", manifest_path, source_key: first.source_key };
    const { asset } = (await create(fields)).body;
    expect(asset).toMatchObject({ manifest_path, ready_at: expect.any(String) });
    const plays = async (id: number) => (await app.call("GET", `/media/${id}/master.m3u8`)).status;
    expect(await plays(asset.id)).toBe(200);
    const { body: contract } = await next(app);
    expect(await plays(asset.id)).toBe(200);
    await callback(app, contract, "complete", await putArtifacts(app, contract));
    expect([await plays(asset.id), await plays(first.id)]).toEqual([200, 200]);
    await app.as(key).deleteAsset(asset.id);
    expect([await plays(asset.id), await plays(first.id)]).toEqual([404, 200]);
  });

  test("can share its source, which is deleted with the last asset", async () => {
    const { asset: first } = await uploaded(app, key);
    const { asset } = (await create({ source_key: first.source_key })).body;
    const objects = async () => (await app.opened.app.objects?.list(""))?.objects.map((one) => one.key);
    await app.as(key).deleteAsset(first.id);
    app.advance(300_000);
    await app.runTask("sweep-objects");
    expect(await objects()).toEqual([first.source_key]);
    await app.as(key).deleteAsset(asset.id);
    expect(await objects()).toEqual([]);
  });

  test("with external media has no job: playback returns its manifest URL", async () => {
    const manifest_url = "https://cdn.example/a/master.m3u8";
    const answer = await create({ provider: "external_serve", manifest_url, playback_status: "ready" });
    expect([answer.status, answer.body.transcoding_job, answer.body.worker_contract]).toEqual([201, null, null]);
    expect(await types()).toEqual([]);
    const playback = await app.as(key).getPlayback(answer.body.asset.id);
    expect(playback.body.hls_url).toBe(manifest_url);
    expectError(await app.as(key).retryAsset(answer.body.asset.id), 409, "asset_conflict");
    for (const bad of [undefined, null, "http://cdn.example/a", "ftp://x", "x", "https://u:p@cdn.example/", 5])
      expectError(
        await create({ provider: "external_serve", manifest_url: bad }),
        422,
        "validation_failed",
        String(bad),
      );
    expectError(await create({ manifest_url }), 422, "validation_failed");
  });

  test("with external media is public, and its source's key opens and deletes nothing here", async () => {
    const manifest_url = "https://cdn.example/a/master.m3u8";
    const outside = { provider: "external_serve", manifest_url, playback_status: "ready", input_status: "uploaded" };
    expectError(await create({ ...outside, playback_policy: "signed" }), 422, "validation_failed");
    expect((await create({ ...outside, playback_policy: "public" })).body.asset.playback_policy).toBe("public");
    // The tenant's default is signed playback, and vodbox cannot protect external media.
    expect((await create(outside)).body.asset.playback_policy).toBe("public");
    const { asset: mine } = await uploaded(app, key);
    const other = await app.tenant();
    const { asset: theirs } = await uploaded(app, await app.key(other.id));
    const opaque = [mine.source_key, theirs.source_key, "s3://bucket/a b.mov", "../../etc/passwd", "", "ä/%2e%2e"];
    for (const source_key of opaque) {
      const { status, body } = await create({ ...outside, source_key });
      expect([status, body.asset?.source_key], source_key).toEqual([201, source_key]);
      expectError(await app.as(key).getDownload(body.asset.id), 404, "not_found", source_key);
      expect((await app.as(key).deleteAsset(body.asset.id)).status).toBe(204);
      app.advance(3_600_000);
      await app.runTask("sweep-objects");
    }
    for (const source_key of [mine.source_key, theirs.source_key])
      expect(await app.opened.app.objects?.head(source_key), source_key).not.toBeNull();
    expectError(await create({ ...outside, source_key: "a\0" }), 422, "validation_failed");
    expectError(await create({ source_key: theirs.source_key }), 422, "validation_failed");
  });

  test("is created once with an Idempotency-Key, and its contract's URL is signed again", async () => {
    const { asset: first } = await uploaded(app, key);
    const headers = { "idempotency-key": "one" };
    const ask = () => create({ source_key: first.source_key }, { headers });
    const made = await ask();
    const again = await ask();
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([201, "true"]);
    expect(again.body.asset).toEqual(made.body.asset);
    expect((await app.call("GET", again.body.worker_contract.source.url)).text).toBe("not really a video");
    expect((await app.as(key).listAssets()).body).toHaveLength(2);
  });

  test.for(
    Object.keys({
      title: 1,
      input_status: 1,
      playback_status: 1,
      source_bytes: 1,
      storage_bytes: 1,
      duration_seconds: 1,
      source_key: 1,
    }),
  )("needs %s", async (field) => {
    expectError(await create({ [field]: undefined }), 422, "parameter_missing");
    expectError(await create({ [field]: {} }), 422, "parameter_missing");
    expect((await app.as(key).listAssets()).body).toEqual([]);
  });

  test.for<[string, unknown]>([
    ["title", " "],
    ["input_status", "ready"],
    ["playback_status", "uploaded"],
    ["source_bytes", -1],
    ["source_bytes", 1.5],
    ["storage_bytes", -1],
    ["duration_seconds", -0.1],
    ["external_id", "vid_x"],
    ["external_id", "123"],
    ["playback_policy", "secret"],
    ["tags", { a: {} }],
    ["source_sha256", "xyz"],
    ["provider", "other"],
    ["collection_id", "x"],
    ["source_key", "sources/a.mp4"],
    ["source_key", "tenants/2/sources/a.mp4"],
    ["source_key", "tenants/1/../2/a.mp4"],
    ["source_key", "tenants/1/"],
    ["source_key", "tenants/1/a\0b"],
    ["manifest_path", "tenants/2/a/master.m3u8"],
    ["manifest_path", "tenants/1/master.m3u8"],
    ["manifest_path", "tenants/1/sources/master.m3u8"],
    ["manifest_path", "tenants/1/a/../../2/b/master.m3u8"],
  ])("is refused with the %s %j", async ([field, value]) => {
    expect(tenant.id).toBe(1);
    expectError(await create({ [field]: value }), 422, "validation_failed");
    expect((await app.as(key).listAssets()).body).toEqual([]);
    expect(await types()).toEqual([]);
  });

  test("is refused without its wrapper, for another tenant, with an existing id, and without storage", async () => {
    for (const video_asset of [undefined, null, [], "x"])
      expectError(
        await app.as(key).unchecked.createAsset({ tenant_id: tenant.id, video_asset }),
        422,
        "parameter_missing",
      );
    const other = await app.tenant();
    for (const tenant_id of [other.id, 999])
      expectError(await app.as(key).createAsset({ tenant_id, video_asset: required() }), 404, "not_found");
    expect((await create({ external_id: "mine" })).status).toBe(201);
    expectError(await create({ external_id: "mine" }), 422, "validation_failed");
    const without = await testApp({ storage: "none" });
    const { id } = await without.tenant();
    const body = { tenant_id: id, video_asset: required() };
    expectError(await without.as({ admin: without.admin }).createAsset(body), 503, "storage_not_configured");
  });
});
