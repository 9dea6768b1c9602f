import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach, describe, expect, test } from "vitest";
import { startFetches } from "#features/uploads/fetches.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { until } from "#test/support/descendants.ts";
import { expectError } from "#test/support/error.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";

/** A web server on a loopback address that the operator has allowed; other loopback addresses stay blocked. */
const HOST = "127.0.0.2";
async function website(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, HOST);
  await once(server, "listening");
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://${HOST}:${(server.address() as AddressInfo).port}`;
}

let app: TestApp;
let key: string;
beforeEach(async () => {
  app = await testApp({ webhook_allow_cidrs: `${HOST}/32`, max_upload_bytes: 5_000_000 });
  key = await app.key((await app.tenant()).id);
});
const fromUrl = (url: string, more: Record<string, unknown> = {}) => app.as(key).uploadFromUrl({ url, ...more });
/** Runs all due fetches to their end. */
const fetched = async () => {
  await Promise.all(await startFetches(app.opened.app));
};
const session = async (id: number) => (await app.as(key).getUpload(id)).body;
const objects = async () => (await app.opened.app.objects?.list(""))?.objects.length;
const types = async () => (await app.newEvents()).map(({ type }) => type);

describe("a source from a URL", () => {
  test("is fetched, and continues like any upload", async () => {
    const bytes = randomBytes(3_000_000);
    const site = await website((_, response) => response.writeHead(200, { "content-length": bytes.length }).end(bytes));
    const { status, body } = await fromUrl(`${site}/files/Summer%20trip.mp4?sig=secret`, { tags: { a: 1 } });
    expect([status, body]).toMatchObject([
      201,
      { status: "pending", filename: "Summer trip.mp4", bytes_received: null },
    ]);
    expect(body).not.toHaveProperty("upload_url");
    expect(await session(body.id)).not.toHaveProperty("upload_url");
    await fetched();
    expect(await session(body.id)).toMatchObject({
      status: "completed",
      bytes_expected: bytes.length,
      bytes_received: bytes.length,
    });
    expect(await types()).toEqual(["video.upload.completed", "video.job.queued"]);
    const asset = await app.as(key).getAsset(body.asset_id);
    expect(asset.body).toMatchObject({
      title: "Summer trip",
      input_status: "uploaded",
      playback_status: "processing",
      tags: { a: 1 },
    });
    expect(asset.text).not.toContain("secret");
    const source = await app.as(key).getDownload(body.asset_id);
    const download = await app.opened.server.fetch(new Request(source.body.url));
    const sha256 = (data: Uint8Array) => createHash("sha256").update(data).digest("hex");
    expect(sha256(new Uint8Array(await download.arrayBuffer()))).toBe(sha256(bytes));
    await fetched();
    expect(await types()).toEqual([]);
  });

  test("that exceeds the plan's bytes fails immediately, and nothing of it is kept", async () => {
    const [tenant] = (await app.as(key).listTenants()).body;
    const free = { admin: app.admin, body: { plan_name: "free" } };
    await app.call("PATCH", `/api/v1/admin/tenants/${tenant.id}`, free);
    const elsewhere = { provider: "external_serve", manifest_url: "https://cdn.example.com/master.m3u8" };
    const sizes = { source_bytes: 0, storage_bytes: 4_999_999_999, duration_seconds: 1 };
    const status = { input_status: "uploaded", playback_status: "ready" };
    const source_key = `tenants/${tenant.id}/sources/x.mp4`;
    const video_asset = { title: "Much", source_key, ...elsewhere, ...sizes, ...status };
    expect((await app.as(key).createAsset({ tenant_id: tenant.id, video_asset })).status).toBe(201);
    const site = await website((_, response) => response.end("video"));
    const { body } = await fromUrl(`${site}/x.mp4`);
    await fetched();
    expect((await session(body.id)).status).toBe("failed");
    const asset = (await app.as(key).getAsset(body.asset_id)).body;
    expect(asset).toMatchObject({ input_status: "failed", error: { code: "quota_exceeded" } });
    expect(await types()).toEqual(["video.upload.failed"]);
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    expect(await objects()).toBe(0);
  });

  test("is fetched through redirects, each of which is checked", async () => {
    const file = await website((_, response) => response.end("video"));
    const hop = await website((request, response) =>
      response.writeHead(302, { location: request.url === "/a" ? "/b" : `${file}/x.mp4` }).end(),
    );
    const { body } = await fromUrl(`${hop}/a`);
    await fetched();
    expect((await session(body.id)).status).toBe("completed");
    for (const location of ["http://127.0.0.1:1/", "http://169.254.169.254/latest", "file:///etc/passwd"]) {
      const trap = await website((_, response) => response.writeHead(302, { location }).end());
      const led = (await fromUrl(`${trap}/x`)).body;
      await fetched();
      expect((await session(led.id)).status, location).toBe("failed");
      const asset = await app.as(key).getAsset(led.asset_id);
      expect(asset.body.error.code, location).toBe("source_blocked");
    }
  });

  test.each<[string, RequestListener, string]>([
    ["is not there", (_, response) => response.writeHead(404).end(), "source_refused"],
    ["wants a login", (_, response) => response.writeHead(401).end(), "source_refused"],
    ["is empty", (_, response) => response.end(), "source_empty"],
    [
      "says that it is too large",
      (_, response) => response.writeHead(200, { "content-length": 6_000_000 }).write("x"),
      "source_too_large",
    ],
    ["is larger than allowed", (_, response) => void response.write(Buffer.alloc(6_000_000)), "source_too_large"],
    ["leads round and round", (_, response) => response.writeHead(302, { location: "/again" }).end(), "source_refused"],
  ])("that %s fails for good, with one event, and leaves nothing", async (_, answer, code) => {
    const { body } = await fromUrl(`${await website(answer)}/x.mp4`);
    await fetched();
    expect(await session(body.id)).toMatchObject({ status: "failed" });
    const asset = (await app.as(key).getAsset(body.asset_id)).body;
    expect(asset).toMatchObject({ input_status: "failed", playback_status: "draft", error: { code } });
    expect(await app.newEvents()).toMatchObject([
      { type: "video.upload.failed", data: { upload_id: body.id, asset_id: String(body.asset_id) } },
    ]);
    await app.runTask("sweep-objects");
    expect(await objects()).toBe(0);
    app.advance(400_000);
    await fetched();
    expect(await types()).toEqual([]);
  });

  test("with a temporary failure is retried three times with increasing delays", async () => {
    let asked = 0;
    const site = await website((_, response) => {
      asked++;
      if (asked === 1) response.writeHead(503).end();
      else if (asked === 2) response.writeHead(200, { "content-length": 100 }).write("torn", () => response.destroy());
      else if (asked === 3) response.destroy();
      else response.end("video");
    });
    const { body } = await fromUrl(`${site}/x.mp4`);
    for (const waitMs of [10_000, 60_000, 300_000]) {
      await fetched();
      expect(await session(body.id)).toMatchObject({ status: "pending" });
      app.advance(waitMs - 1000);
      await fetched();
      app.advance(1500);
    }
    expect([asked, await objects()]).toEqual([3, 0]);
    await fetched();
    expect(asked).toBe(4);
    expect(await session(body.id)).toMatchObject({ status: "completed", bytes_received: 5 });
  });

  test("is not fetched into an upload that was aborted meanwhile", async () => {
    const release = Promise.withResolvers<void>();
    const site = await website(async (_, response) => {
      response.write("vid");
      await release.promise;
      response.end("eo");
    });
    const { body } = await fromUrl(`${site}/x.mp4`);
    const running = await startFetches(app.opened.app);
    await app.as(key).deleteAsset(body.asset_id);
    release.resolve();
    await Promise.all(running);
    await app.runTask("sweep-objects");
    expect([(await app.as(key).getUpload(body.id)).status, await objects()]).toEqual([404, 0]);
  });
});

test.each([
  ["http://127.0.0.1/x", "validation_failed"],
  ["https://169.254.169.254/latest/meta-data", "validation_failed"],
  ["file:///etc/passwd", "validation_failed"],
  ["https://user:secret@example.com/x.mp4", "validation_failed"],
  ["no address", "validation_failed"],
  [7, "parameter_missing"],
  [undefined, "parameter_missing"],
])("a URL like %s is refused immediately, and creates no asset", async (url, code) => {
  expectError(await fromUrl(url as string), 422, code);
  expect((await app.as(key).listAssets()).body).toEqual([]);
});

test("a server that is killed during a fetch starts it again", async () => {
  const began = Promise.withResolvers<void>();
  let asked = 0;
  const site = await website((_, response) => {
    asked++;
    response.write("half ");
    if (asked === 1) began.resolve();
    else response.end("and whole");
  });
  const env = { VODBOX_WEBHOOK_ALLOW_CIDRS: `${HOST}/32`, VODBOX_MIN_FREE_BYTES: "0" };
  const dataDir = emptyFolder();
  const first = await startServer(dataDir, { env });
  const admin = { admin: first.admin };
  await first.as({ ...admin }).createTenant({ name: "A", slug: "a" });
  const body = { tenant_id: 1, url: `${site}/x.mp4` };
  const upload = (await first.as({ ...admin }).uploadFromUrl(body)).body;
  await began.promise;
  first.child.kill("SIGKILL");
  await first.ended;
  const second = await startServer(dataDir, { env });
  const state = async () => (await second.call("GET", `/api/v1/uploads/${upload.id}`, admin)).body;
  // The claim of the dead process expires after a minute.
  await until("the source is there", async () => (await state()).status === "completed", 50_000);
  expect(await state()).toMatchObject({ bytes_received: 14, bytes_expected: 14 });
});
