import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { contractOf, uploaded } from "#test/support/flow.ts";
import { png } from "#test/support/png.ts";

let app: TestApp;
let key: string;

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  key = await app.key((await app.tenant()).id);
  return app.close;
});

const path = "/api/v1/encoding_profiles";
const create = (body: Record<string, unknown>) => app.as(key).unchecked.createEncodingProfile(body);
const setImage = (name: string, image: Uint8Array, headers: Record<string, string> = { "content-type": "image/png" }) =>
  app.as({ key, headers }).setWatermark(name, image);

describe("a watermark", () => {
  test("needs an image before the profile is used, which workers can read", async () => {
    await create({ name: "marked", watermark: { position: "top-left", opacity: 0.5, width_percent: 20 } });
    const initiate = () =>
      app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 1, encoding_profile: "marked" });
    expectError(await initiate(), 422, "watermark_missing");
    const image = png(64, 32);
    const sha256 = createHash("sha256").update(image).digest("hex");
    const set = await setImage("marked", image);
    expect(set.body).toMatchObject({
      version: 2,
      watermark: { position: "top-left", opacity: 0.5, width_percent: 20, image_sha256: sha256 },
    });
    expect((await initiate()).status).toBe(201);
    const { job } = await uploaded(app, key, { encoding_profile: "marked" });
    const { watermark } = (await contractOf(app, job.id)).encoding_spec.video;
    expect(watermark).toMatchObject({ position: "top-left", opacity: 0.5, width_percent: 20, image: { sha256 } });
    const read = await app.opened.server.fetch(
      new Request(watermark.image.url, { headers: { "x-svc-worker-token": app.worker } }),
    );
    expect(Buffer.from(await read.arrayBuffer())).toEqual(image);
    expect((await app.opened.server.fetch(new Request(watermark.image.url))).status).toBe(401);
    // A client that encodes itself reads it with its key.
    const own = (await app.call("GET", "/api/v1/encoding_spec?profile=marked", { key })).body.video.watermark;
    const asClient = await app.opened.server.fetch(new Request(own.image.url, { headers: { "x-api-key": key } }));
    expect(asClient.headers.get("content-type")).toBe("image/png");
    expect(Buffer.from(await asClient.arrayBuffer())).toEqual(image);
  });

  test("that is missing is reported also where the profile is not named: as the tenant's default", async () => {
    const tenant = await app.tenant();
    const own = await app.key(tenant.id);
    const call = (method: string, url: string, body: unknown) => app.call(method, url, { key: own, body });
    await call("POST", path, { name: "later" });
    const chosen = { admin: app.admin, body: { default_encoding_profile: "later" } };
    expect((await app.call("PATCH", `/api/v1/admin/tenants/${tenant.id}`, chosen)).status).toBe(200);
    const initiate = () => call("POST", "/api/v1/uploads/initiate", { filename: "a.mp4", bytes_expected: 1 });
    expect((await initiate()).status).toBe(201);
    await call("PATCH", `${path}/later`, { watermark: {} });
    expectError(await initiate(), 422, "watermark_missing");
  });

  test("must be a PNG image of a usable size", async () => {
    expectError(await setImage("marked", Buffer.from("GIF89a")), 422, "invalid_image");
    expectError(await setImage("marked", png(5000, 10)), 422, "invalid_image");
    expectError(await setImage("marked", png(0, 10)), 422, "invalid_image");
    expectError(await setImage("marked", Buffer.alloc(2 ** 20 + 1)), 413, "payload_too_large");
    expectError(await setImage("marked", png(8, 8), { "content-type": "image/jpeg" }), 415, "unsupported_media_type");
    await create({ name: "plain" });
    expectError(await setImage("plain", png(8, 8)), 422, "validation_failed");
    expectError(await setImage("nowhere", png(8, 8)), 404, "not_found");
  });

  test.each([
    ["is truncated", png(8, 8).subarray(0, -20)],
    ["consists of its header", png(8, 8).subarray(0, 33)],
    ["has no pixels", png(8, 8, { rows: 0 })],
    ["lacks a row", png(8, 8, { rows: 7 * 33 })],
    ["decompresses to more than its size", png(8, 8, { rows: 2 ** 28 })],
    ["has pixels that are not compressed", png(8, 8).fill(0x55, 41, 49)],
    ["has an impossible format", png(8, 8, { format: [77, 99, 9, 9, 9] })],
    ["has colors without a palette", png(8, 8, { format: [8, 3], rows: 72 })],
  ])("that %s is refused, because every job would fail", async (_, image) => {
    const refused = await setImage("marked", image);
    expectError(refused, 422, "invalid_image");
    expect(refused.error.error).toMatch(/damaged/);
  });

  test.each([
    ["gray of 1 bit", png(9, 9, { format: [1, 0], rows: 9 * 3 })],
    ["RGB of 16 bit", png(9, 9, { format: [16, 2], rows: 9 * 55 })],
    // Passes of 2x2, 1x2, 3x1, 2x3, 5x2, 4x5 and 9x4 pixels.
    ["interlaced", png(9, 9, { format: [8, 0, 0, 0, 1], rows: 2 * 3 + 2 * 2 + 4 + 3 * 3 + 2 * 6 + 5 * 5 + 4 * 10 })],
  ])("may be %s", async (_, image) => {
    expect((await setImage("marked", image)).status).toBe(200);
  });

  test("is kept for jobs, and deleted when nothing uses it", async () => {
    const image = png(16, 16);
    const sha256 = createHash("sha256").update(image).digest("hex");
    await setImage("marked", image);
    await app.as(key).deleteEncodingProfile("marked");
    const read = async () =>
      (
        await app.opened.server.fetch(
          new Request(`http://vodbox.test/api/v1/watermarks/${sha256}`, {
            headers: { "x-svc-worker-token": app.worker },
          }),
        )
      ).status;
    await app.runTask("prune-watermarks");
    expect(await read()).toBe(200);
    app.advance(31 * 24 * 3_600_000);
    await app.runTask("prune-watermarks");
    expect(await read()).toBe(404);
  });
});
