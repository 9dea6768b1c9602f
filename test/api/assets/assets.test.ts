import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, readyAsset, uploaded } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});
const at = (id: number, rest = "") => `/api/v1/assets/${id}${rest}`;
const objects = async () => (await app.opened.app.objects?.list(""))?.objects.map((one) => one.key);

describe("an asset", () => {
  test("can be changed in title, description and collection, by PATCH and PUT, and nothing else", async () => {
    const { asset } = await uploaded(app, key);
    const change = (method: string, video_asset: unknown) =>
      app.call(method, at(asset.id), { key, body: { video_asset } });
    const named = await change("PATCH", {
      title: "Crème brûlée",
      description: "À point",
      playback_status: "processing",
      tenant_id: asset.tenant_id,
    });
    expect(named.body).toMatchObject({
      title: "Crème brûlée",
      description: "À point",
      playback_status: "processing",
      tenant_id: asset.tenant_id,
    });
    const plain = await change("PUT", { description: null, collection_id: 77 });
    expect(plain.body).toMatchObject({ title: "Crème brûlée", description: null, collection_id: null });
    expect((await change("PATCH", {})).body.title).toBe("Crème brûlée");
    expect((await app.as(key).getAsset(asset.id)).body.title).toBe("Crème brûlée");
    for (const bad of [
      { title: " " },
      { title: 5 },
      { title: null },
      { description: "a\0b" },
      { collection_id: "x" },
      { title: "Never", playback_status: "ready" },
      { title: "Never", tenant_id: 9 },
    ]) {
      expectError(await change("PATCH", bad), 422, "validation_failed");
    }
    for (const none of [undefined, null, [], "x"]) expectError(await change("PATCH", none), 422, "parameter_missing");
  });

  test("is deleted with its media, source, job and storage usage, and one event is emitted", async () => {
    const kept = await readyAsset(app, key);
    const before = await objects();
    const { asset } = await readyAsset(app, key);
    const [full] = (await app.as(key).listTenants()).body;
    await app.newEvents();
    expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
    expect(await app.newEvents()).toMatchObject([
      { type: "video.asset.deleted", data: { asset_id: String(asset.id), external_id: asset.external_id } },
    ]);
    expect(await objects()).toEqual(before);
    const [left] = (await app.as(key).listTenants()).body;
    expect(left.storage_bytes).toBe(full.storage_bytes / 2);
    for (const method of ["GET", "DELETE"])
      expectError(await app.call(method, at(asset.id), { key }), 404, "not_found");
    expectError(await app.as(key).getPlayback(asset.external_id), 404, "not_found");
    expect((await app.call("GET", `/media/${asset.external_id}/master.m3u8`)).status).toBe(404);
    expect((await app.as(key).getAsset(kept.asset.id)).status).toBe(200);
  });

  test("deleted during its encode leaves its worker without a job", async () => {
    const { asset } = await uploaded(app, key);
    const { body: contract } = await next(app);
    await app.as(key).deleteAsset(asset.id);
    for (const name of ["heartbeat", "complete", "fail", "release"] as const)
      expect((await callback(app, contract, name)).status).toBe(404);
    expect((await next(app)).status).toBe(204);
  });

  test("deleted while a worker uploads artifacts keeps none of them", async () => {
    const before = await objects();
    const { asset } = await uploaded(app, key);
    const { body: contract } = await next(app);
    const path = contract.outputs.thumbnail_path;
    const signed = await app.call("POST", contract.artifacts.sign_url, {
      worker: app.worker,
      lease: contract.lease.token,
      body: { paths: [path] },
    });
    await app.as(key).deleteAsset(asset.id);
    const [{ url, method, headers }] = signed.body;
    expectError(await app.call(method, url, { headers, raw: "late" }), 403, "address_revoked");
    app.advance(2 * 120_000);
    await app.runTask("sweep-objects");
    expect(await objects()).toEqual(before);
  });
});

describe("tags", () => {
  test("are merged and removed with any key of the tenant, and the whole map is returned", async () => {
    const { asset } = await uploaded(app, key, { tags: { a: 1 } });
    const reader = await app.key(asset.tenant_id, ["billing:write"]);
    const patch = (body: unknown) => app.as(reader).unchecked.updateTags(asset.id, body);
    expect((await patch({ b: "zwei", c: true, "d/e ü": 0.5 })).body).toEqual({
      a: 1,
      b: "zwei",
      c: true,
      "d/e ü": 0.5,
    });
    expect((await patch({ a: null, b: "2", nothing: null })).body).toEqual({ b: "2", c: true, "d/e ü": 0.5 });
    const remove = (name: string) => app.as(reader).deleteTag(asset.id, name);
    expect([(await remove("d/e ü")).body, (await remove("never there")).body]).toEqual([
      { b: "2", c: true },
      { b: "2", c: true },
    ]);
    expect((await app.as(key).getAsset(asset.id)).body.tags).toEqual({ b: "2", c: true });
  });

  test("are limited: a request beyond a limit changes nothing", async () => {
    const { asset } = await uploaded(app, key);
    const patch = (body: unknown) => app.as(key).unchecked.updateTags(asset.id, body);
    const many = (count: number, prefix = "k") =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, index]));
    expect(Object.keys((await patch(many(100))).body)).toHaveLength(100);
    for (const bad of [
      { one: "more" },
      { k0: { deep: 1 } },
      { k0: ["x"] },
      { ["k".repeat(65)]: 1 },
      { "": 1 },
      { k0: "x".repeat(1025) },
      { ".": 1 },
      { "..": "x" },
    ]) {
      expectError(await patch(bad), 422, "validation_failed");
    }
    expect((await patch({ k0: "x".repeat(1024), k1: null, ["k".repeat(64)]: 1 })).status).toBe(200);
  });
});

test("a key that clients resolve within the path removes no asset", async () => {
  const { asset } = await uploaded(app, key);
  for (const segment of ["..", "%2e%2e", ".%2E"])
    expectError(await app.call("DELETE", at(asset.id, `/tags/${segment}`), { key }), 404, "not_found");
  expect((await app.as(key).getAsset(asset.id)).status).toBe(200);
});

test("the original source can be downloaded for five minutes", async () => {
  const bytes = "not really a video";
  const { asset } = await uploaded(app, key, { bytes, filename: 'Ferien "Süd" 1.mp4', content_type: "video/mp4" });
  const { body } = await app.as(key).getDownload(asset.id);
  expect(body).toMatchObject({
    method: "GET",
    filename: 'Ferien "Süd" 1.mp4',
    content_type: "video/mp4",
    bytes: bytes.length,
    expires_in: 300,
  });
  const got = await app.call("GET", body.url);
  expect([got.text, got.headers.get("content-type"), got.headers.get("content-length")]).toEqual([
    bytes,
    "video/mp4",
    String(bytes.length),
  ]);
  expect(got.headers.get("content-disposition")).toMatch(
    /^attachment; filename=.*filename\*=UTF-8''Ferien%20%22S%C3%BCd%22%201\.mp4$/,
  );
  expect((await app.call("GET", body.url, { headers: { range: "bytes=4-9" } })).text).toBe("really");
  app.advance(301_000);
  expectError(await app.call("GET", body.url), 403, "address_expired");
  const pending = await app.as(key).initiateUpload({ filename: "x.mp4", bytes_expected: 1 });
  expectError(await app.as(key).getDownload(pending.body.asset_id), 404, "not_found");
});
