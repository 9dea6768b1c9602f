import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { next, uploaded } from "#test/support/flow.ts";

async function tenantWithKey(flags?: Record<string, unknown>) {
  const app = await testApp(flags);
  const tenant = await app.tenant();
  return { app, tenant, key: await app.key(tenant.id) };
}

test("an upload is initiated, put, completed once and queued once", async () => {
  const { app, tenant, key } = await tenantWithKey();
  const bytes = new Uint8Array(1000).fill(7);
  const initiated = await app
    .as(key)
    .initiateUpload({ filename: "a clip.mp4", bytes_expected: 1000, content_type: "video/mp4" });
  expect(initiated.status).toBe(201);
  expect(initiated.body).toMatchObject({
    tenant_id: tenant.id,
    status: "pending",
    bytes_expected: 1000,
    bytes_received: null,
    upload_method: "PUT",
  });
  expect((await app.newEvents()).map((event) => event.type)).toEqual([]);

  const put = await app.call("PUT", initiated.body.upload_url, { raw: bytes, headers: initiated.body.upload_headers });
  expect(put.status).toBe(200);
  expect(put.headers.get("etag")).toMatch(/^".+"$/);

  const complete = () => app.as(key).completeUpload(initiated.body.id, { bytes_received: 1000 });
  const completed = await complete();
  expect(completed.status).toBe(200);
  expect(completed.body).toMatchObject({
    status: "completed",
    bytes_received: 1000,
    asset: {
      input_status: "uploaded",
      playback_status: "processing",
      source_bytes: 1000,
      title: "a clip",
      original_filename: "a clip.mp4",
    },
    transcoding_job: { status: "queued" },
  });
  expect((await app.newEvents()).map((event) => event.type)).toEqual(["video.upload.completed", "video.job.queued"]);

  const again = await complete();
  expect(again.status).toBe(200);
  expect(again.body).toEqual(completed.body);
  expect(await app.newEvents()).toEqual([]);
  expect((await app.call("PUT", initiated.body.upload_url, { raw: bytes })).status).toBe(409);
});

const initiate = async (app: TestApp, key: string, bytes: number, fields = {}) =>
  (await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: bytes, ...fields })).body;
const complete = (app: TestApp, key: string, upload: { id: number }, bytes: number) =>
  app.as(key).completeUpload(upload.id, { bytes_received: bytes });
const objectsOf = (app: TestApp) =>
  readdirSync(join(app.opened.app.config.data_dir, "objects"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);

describe("a relative path", () => {
  test("is stored by every way to start an upload", async () => {
    const { app, key } = await tenantWithKey();
    const of = async (id: number) => (await app.as(key).getAsset(id)).body.relative_path;
    const relative_path = "2026/trip/day 1/ä.mp4";
    const fields = { filename: "a.mp4", relative_path };
    const ways = [
      ["initiate", { ...fields, bytes_expected: 3 }],
      ["initiate_multipart", { ...fields, bytes_expected: 3 }],
      ["from_url", { ...fields, url: "https://example.com/a.mp4" }],
    ] as const;
    for (const [way, body] of ways) {
      const made = await app.call("POST", `/api/v1/uploads/${way}`, { key, body });
      expect([way, made.status, await of(made.body.asset_id)]).toEqual([way, 201, relative_path]);
    }
    const encoded = (text: string) => Buffer.from(text).toString("base64");
    for (const name of ["relative_path", "relativePath"]) {
      const headers = {
        "tus-resumable": "1.0.0",
        "upload-length": "3",
        "upload-metadata": `${name} ${encoded(`${name}/x`)}`,
      };
      const made = await app.call("POST", "/api/v1/uploads/tus", { key, headers });
      const { body } = await app.as(key).getUpload(made.headers.get("location")?.split("/").at(-1));
      expect(await of(body.asset_id)).toBe(`${name}/x`);
    }
    const none = await app.as(key).initiateUpload({ filename: "b.mp4", bytes_expected: 3 });
    expect(await of(none.body.asset_id)).toBeNull();
    for (const bad of ["", " ", 1, [], "x".repeat(1001), "a\0"])
      expectError(
        await app.as(key).unchecked.initiateUpload({ ...ways[0][1], relative_path: bad }),
        422,
        "validation_failed",
        JSON.stringify(bad),
      );
  });
});

describe("the bytes", () => {
  test("beyond the announced size are 413 and none is stored, not even in place of earlier ones", async () => {
    const { app, key } = await tenantWithKey();
    const upload = await initiate(app, key, 3);
    const refused = await app.call("PUT", upload.upload_url, { raw: "abcd" });
    expectError(refused, 413, "payload_too_large");
    expect(objectsOf(app)).toEqual([]);
    expect((await app.call("PUT", upload.upload_url, { raw: "abc" })).status).toBe(200);
    // Without a length, so that the announced size is exceeded while reading.
    const stream = new Blob(["abcd"]).stream() as unknown as string;
    expectError(await app.call("PUT", upload.upload_url, { raw: stream }), 413, "payload_too_large");
    expect(objectsOf(app)).toHaveLength(1);
    expect((await complete(app, key, upload, 3)).status).toBe(200);
    const { body: contract } = await next(app);
    expect((await app.call("GET", contract.source.url)).text).toBe("abc");
  });

  test("are refused with an altered URL, another method, and after its expiry", async () => {
    const { app, key } = await tenantWithKey({ upload_ttl_seconds: 600 });
    const { upload_url: url } = await initiate(app, key, 3);
    const altered = [
      url.replace("max_bytes=3", "max_bytes=4"),
      url.replace(/expires=\d+/, "expires=9999999999"),
      url.replace("tenants/1/", "tenants/2/"),
      `${url}0`,
      url.replace(/sig=.*/, ""),
      url.replace(/\?.*/, ""),
      `${url}&x=1`,
    ];
    for (const address of altered)
      expectError(await app.call("PUT", address, { raw: "abc" }), 403, "address_invalid", address);
    expectError(await app.call("GET", url), 403, "address_invalid");
    app.advance(601_000);
    expectError(await app.call("PUT", url, { raw: "abc" }), 403, "address_expired");
    expect(objectsOf(app)).toEqual([]);
  });

  test("of a completed upload can no longer change", async () => {
    const { app, key } = await tenantWithKey();
    const upload = await initiate(app, key, 3);
    await app.call("PUT", upload.upload_url, { raw: "abc" });
    await complete(app, key, upload, 3);
    expectError(await app.call("PUT", upload.upload_url, { raw: "xyz" }), 409, "upload_conflict");
    const { body: contract } = await next(app);
    expect((await app.call("GET", contract.source.url)).text).toBe("abc");
    expect((await app.as(key).getUpload(upload.id)).body).not.toHaveProperty("upload_url");
  });
});

describe("complete", () => {
  test("accepts a smaller file with its true size", async () => {
    const { app, key } = await tenantWithKey();
    const upload = await initiate(app, key, 1000);
    await app.call("PUT", upload.upload_url, { raw: "abc" });
    const done = await complete(app, key, upload, 3);
    expect(done.body).toMatchObject({ status: "completed", bytes_expected: 1000, bytes_received: 3 });
    expect(done.body.asset).toMatchObject({ source_bytes: 3, input_status: "uploaded", playback_status: "processing" });
  });

  test("refuses what storage does not have: nothing, no bytes, another size; and the upload stays pending", async () => {
    const { app, key } = await tenantWithKey();
    const upload = await initiate(app, key, 10);
    expectError(await complete(app, key, upload, 10), 422, "bytes_mismatch", "nothing was put");
    await app.call("PUT", upload.upload_url, { raw: "" });
    expectError(await complete(app, key, upload, 0), 422, "bytes_mismatch", "no bytes");
    await app.call("PUT", upload.upload_url, { raw: "12345" });
    for (const bytes of [0, 4, 6, 10, 11]) {
      const refused = await complete(app, key, upload, bytes);
      expectError(refused, 422, "bytes_mismatch", String(bytes));
      expect(refused.error.details).toHaveProperty("bytes_received");
    }
    expect(await app.newEvents()).toEqual([]);
    expect((await next(app)).status).toBe(204);
    expect((await complete(app, key, upload, 5)).status).toBe(200);
  });

  test("ten concurrent requests create one job and one of each event", async () => {
    const { app, key } = await tenantWithKey();
    const upload = await initiate(app, key, 3);
    await app.call("PUT", upload.upload_url, { raw: "abc" });
    const answers = await Promise.all(Array.from({ length: 10 }, () => complete(app, key, upload, 3)));
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
    expect(new Set(answers.map((answer) => answer.text)).size).toBe(1);
    const types = (await app.newEvents()).map((event) => event.type);
    expect(types).toEqual(["video.upload.completed", "video.job.queued"]);
    expect((await next(app)).status).toBe(200);
    expect((await next(app)).status).toBe(204);
  });

  test("of an expired upload is 409", async () => {
    const { app, key } = await tenantWithKey({ upload_ttl_seconds: 600 });
    const upload = await initiate(app, key, 3);
    await app.call("PUT", upload.upload_url, { raw: "abc" });
    app.advance(601_000);
    expectError(await complete(app, key, upload, 3), 409, "upload_conflict");
    expect((await next(app)).status).toBe(204);
  });

  test("of another tenant's upload is 404, like one that does not exist", async () => {
    const { app, key } = await tenantWithKey();
    const upload = await initiate(app, key, 3);
    const stranger = await app.key((await app.tenant()).id);
    for (const id of [upload.id, 987_654]) {
      expectError(await complete(app, stranger, { id }, 3), 404, "not_found");
      expectError(await app.as(stranger).getUpload(id), 404, "not_found");
    }
  });
});

test("without object storage every operation that needs it is 503, and the others work", async () => {
  const { app, key } = await tenantWithKey({ storage: "none" });
  const body = { filename: "a.mp4", bytes_expected: 3 };
  expectError(await app.as(key).initiateUpload(body), 503, "storage_not_configured");
  expectError(await complete(app, key, { id: 1 }, 3), 503, "storage_not_configured");
  expect((await app.as(key).listAssets()).body).toEqual([]);
  expect((await next(app)).status).toBe(204);
  expect((await app.as().getReadiness()).status).toBe(200);
  await expect(uploaded(app, key)).rejects.toThrow("storage_not_configured");
});

describe("an expired upload", () => {
  const initiated = async () => {
    const { app, key } = await tenantWithKey({ upload_ttl_seconds: 600 });
    const body = { filename: "late.mp4", bytes_expected: 3 };
    return { app, key, upload: (await app.as(key).initiateUpload(body)).body };
  };
  const objects = async (app: TestApp) => (await app.opened.app.objects?.list(""))?.objects.length;

  test("keeps bytes that are another asset's source", async () => {
    const { app, key, upload } = await initiated();
    await app.call("PUT", upload.upload_url, { raw: "abc" });
    const [, sourceKey = ""] = /\/objects\/([^?]+)/.exec(upload.upload_url) ?? [];
    const video_asset = {
      title: "Registered",
      input_status: "uploaded",
      playback_status: "draft",
      source_bytes: 3,
      storage_bytes: 3,
      duration_seconds: 0,
      source_key: sourceKey,
    };
    const made = await app.as(key).createAsset({ tenant_id: upload.tenant_id, video_asset });
    expect(made.status).toBe(201);
    app.advance(601_000);
    await app.runTask("expire-uploads");
    await app.runTask("sweep-objects");
    const source = await app.as(key).getDownload(made.body.asset.id);
    expect([source.status, (await app.call("GET", source.body.url)).text]).toEqual([200, "abc"]);
    // The last one removes it.
    await app.as(key).deleteAsset(upload.asset_id);
    expect(await objects(app)).toBe(1);
    await app.as(key).deleteAsset(made.body.asset.id);
    expect(await objects(app)).toBe(0);
  });

  test("has one event, and leaves no bytes", async () => {
    const { app, key, upload } = await initiated();
    await app.call("PUT", upload.upload_url, { raw: "abc" });
    await app.newEvents();
    app.advance(599_000);
    await app.runTask("expire-uploads");
    expect(await objects(app)).toBe(1);
    app.advance(2_000);
    await app.runTask("expire-uploads");
    await app.runTask("expire-uploads");
    expect(await objects(app)).toBe(0);
    expect(await app.newEvents()).toMatchObject([
      { type: "video.upload.failed", data: { upload_id: upload.id, asset_id: String(upload.asset_id) } },
    ]);
    expect((await app.as(key).getUpload(upload.id)).body.status).toBe("expired");
    const asset = await app.as(key).getAsset(upload.asset_id);
    expect(asset.body).toMatchObject({ input_status: "failed", playback_status: "draft" });
    const complete = await app.as(key).completeUpload(upload.id, { bytes_received: 3 });
    expectError(complete, 409, "upload_conflict");
  });

  test("keeps nothing of a PUT in progress", async () => {
    const { app, upload } = await initiated();
    const put = await putInTwo(app, upload.upload_url, "abc");
    app.advance(601_000);
    await app.runTask("expire-uploads");
    put.goOn();
    expectError(await put.answer, 403, "address_revoked");
    expect(await objects(app)).toBe(0);
  });
});

test("a PUT that ends after its upload was completed changes nothing", async () => {
  const { app, key } = await tenantWithKey();
  const { body } = await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 3 });
  expect((await app.call("PUT", body.upload_url, { raw: "abc" })).status).toBe(200);
  const put = await putInTwo(app, body.upload_url, "xyz");
  const completed = await app.as(key).completeUpload(body.id, { bytes_received: 3 });
  expect(completed.status).toBe(200);
  put.goOn();
  expectError(await put.answer, 409, "upload_conflict");
  const { body: contract } = await next(app);
  expect((await app.call("GET", contract.source.url)).text).toBe("abc");
});

/** A PUT whose headers have arrived, with bytes that wait for `goOn`. */
async function putInTwo(app: TestApp, url: string, bytes: string) {
  const asked = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();
  const source = {
    async pull(controller: ReadableStreamDefaultController) {
      asked.resolve();
      await late.promise;
      controller.enqueue(Buffer.from(bytes));
      controller.close();
    },
  };
  const answer = app.call("PUT", url, { raw: new ReadableStream(source, { highWaterMark: 0 }) });
  await asked.promise;
  return { answer, goOn: late.resolve };
}
