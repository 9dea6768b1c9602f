import { afterAll, beforeAll, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased, tiny, tinyAsset } from "#test/support/batches.ts";
import { expectError } from "#test/support/error.ts";
import { newBucket, type S3Server, s3Server } from "#test/support/s3-server.ts";

const PART = 16 * 2 ** 20;
const bucket = newBucket("ingest");
let s3: S3Server;
let app: TestApp;
let key: string;
beforeAll(async () => {
  s3 = await s3Server();
  await s3.bucket(bucket);
  app = await testApp({
    rate_limit_uploads: "100000/60",
    storage: "s3",
    s3_endpoint: s3.endpoint,
    s3_bucket: bucket,
    s3_region: s3.region,
    s3_access_key_id: s3.accessKeyId,
    s3_secret_access_key: s3.secretAccessKey,
    s3_delivery: "proxy",
  });
  key = await app.key((await app.tenant()).id);
});
afterAll(async () => {
  await app?.close();
});
const objects = async () => (await app.opened.app.objects?.list(""))?.objects.map((one) => one.key) ?? [];

test("on S3: presigned PUT, parts and proxy, a commit, playback, and a deletion that leaves nothing", async () => {
  const { batch, ask, want, putAll, commit } = await leased(app, key);
  expect(batch.storage.provider).toBe("s3");
  await putAll(tiny("film/"));

  const source = Buffer.concat([Buffer.alloc(PART, "s"), Buffer.from("the end")]);
  const { body: parted } = await want("source.mp4", source, { multipart: true });
  for (const [index, bytes] of [source.subarray(0, PART), source.subarray(PART)].entries()) {
    const { body: signed } = await ask("POST", `/uploads/${parted.id}/parts`, { body: { part_number: index + 1 } });
    const put = await app.call("PUT", signed.url, { raw: new Uint8Array(bytes), headers: signed.headers });
    const confirmed = await ask("POST", `/uploads/${parted.id}/parts/${index + 1}/complete`, {
      body: { etag: put.headers.get("etag") },
    });
    expect(confirmed.status, confirmed.text).toBe(200);
  }
  const completed = await ask("POST", `/uploads/${parted.id}/complete`, { body: { bytes_received: source.length } });
  expect(completed.body, completed.text).toMatchObject({ status: "completed" });

  const text = "WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n";
  const { body: proxied } = await want("en.vtt", text, { mode: "proxy" });
  expectError(await ask("PUT", `/uploads/${proxied.id}/proxy`, { raw: `${text}more` }), 413, "payload_too_large");
  expectError(await ask("PUT", `/uploads/${proxied.id}/proxy`, { raw: "less" }), 422, "bytes_mismatch");
  expect((await ask("PUT", `/uploads/${proxied.id}/proxy`, { raw: text })).body).toMatchObject({ status: "completed" });
  const { body: inParts } = await want("more.bin", source, { mode: "proxy" });
  for (const [index, bytes] of [source.subarray(0, PART), source.subarray(PART)].entries())
    expect(
      (await ask("PUT", `/uploads/${inParts.id}/proxy_parts/${index + 1}`, { raw: new Uint8Array(bytes) })).status,
    ).toBe(200);
  const whole = { part_count: 2, bytes_received: source.length };
  expect((await ask("POST", `/uploads/${inParts.id}/proxy_complete`, { body: whole })).body).toMatchObject({
    status: "completed",
  });

  // S3 does not limit a presigned PUT: completion detects the size.
  const { body: large } = await want("large.bin", "abc");
  const over = await app.call("PUT", large.upload_url, { raw: "abcd", headers: large.upload_headers });
  expect(over.status).toBe(200);
  expectError(
    await ask("POST", `/uploads/${large.id}/complete`, { body: { bytes_received: 3 } }),
    413,
    "payload_too_large",
  );
  expect((await objects()).filter((name) => name.endsWith("large.bin"))).toEqual([]);

  const subtitles = [{ language: "en", label: "English", path: "en.vtt" }];
  const manifest = { assets: [tinyAsset("film/", { source_key: "source.mp4", playback_policy: "public", subtitles })] };
  const { body: done, text: answer } = await commit(manifest);
  expect(done.status, answer).toBe("committed");
  const [asset] = done.assets;
  expect(asset.source_bytes).toBe(source.length);
  // A presigned URL of the batch that is still valid reaches no asset, and its bytes are swept.
  await app.call("PUT", large.upload_url, { raw: "abc", headers: large.upload_headers });
  expect((await objects()).filter((name) => name.includes("/ingest/"))).toHaveLength(1);
  const { body: playback } = await app.as(key).getPlayback(asset.id);
  const get = async (url: string | URL) => (await app.opened.server.fetch(new Request(url))).text();
  const master = await get(playback.hls_url);
  const variant = new URL(master.trim().split("\n").at(-1) as string, playback.hls_url);
  const playlist = await get(variant);
  expect(playlist).toBe(tiny("film/")["film/low/playlist.m3u8"]);
  expect(await get(new URL("1.m4s", variant))).toBe("first segment");
  expect(await get(playback.subtitles[0].url)).toBe(text);
  app.advance(2 * 3_600_000);
  await app.runTask("sweep-batches");
  expect((await objects()).filter((name) => name.includes("/ingest/"))).toEqual([]);
  expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
  expect(await objects()).toEqual([]);
});
