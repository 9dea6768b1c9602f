import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { s3Store } from "#storage/objects/s3.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { sharedBrowser, untilPlayed, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { until } from "#test/support/descendants.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { run } from "#test/support/process.ts";
import { CORS_RULES, newBucket, type S3Server, s3Server } from "#test/support/s3-server.ts";
import { subtitled, VTT } from "#test/support/subtitles.ts";

let s3: S3Server;
let platform: Platform;
let browser: Browser;
const bucket = newBucket("vodbox");
const settingsFor = (prefix: string) => ({
  storage: "s3",
  s3_endpoint: s3.endpoint,
  s3_bucket: bucket,
  s3_region: s3.region,
  s3_access_key_id: s3.accessKeyId,
  s3_secret_access_key: s3.secretAccessKey,
  s3_prefix: prefix,
});
const asEnvironment = (settings: Record<string, string>) =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [`VODBOX_${name.toUpperCase()}`, value]));
const keysUnder = async (prefix: string) => {
  const store = s3Store({ ...s3, bucket, pathStyle: true, prefix: `${prefix}/` });
  return (await store.list("")).objects.map(({ key }) => key);
};

beforeAll(async () => {
  s3 = await s3Server();
  await s3.bucket(bucket);
  await s3.cors(bucket, CORS_RULES);
  [platform, browser] = await Promise.all([startPlatform(asEnvironment(settingsFor("real"))), sharedBrowser()]);
});
afterAll(async () => {
  await platform?.close();
});

test("from upload to playback in a browser on S3: no byte of media passes through the server", async () => {
  const { as, key, clip: bytes } = platform;
  const { asset, upload } = await uploaded(platform, key, { bytes, playback_policy: "signed", title: "On S3" });
  expect(upload.bytes_received).toBe(bytes.length);
  await subtitled(platform, key, asset.id, { is_default: "1" });
  await untilReady(platform, asset.id);
  const { body: playback } = await as(key).getPlayback(asset.id);
  const seen = await visit(browser, `${platform.base}/watch/${asset.external_id}?autoplay=1&token=${playback.token}`);
  await untilPlayed(seen.page, 5);
  expect(seen.faults).toEqual([]);
  expect(new Set(seen.requests.map(({ origin }) => origin))).toEqual(new Set([platform.base, s3.endpoint]));
  const sent = seen.requests.filter(({ pathname }) => /\.(m4s|mp4)$/.test(pathname));
  expect(sent.filter(({ origin }) => origin === s3.endpoint).length).toBeGreaterThan(3);
  // In headers CMCD would be asked for by the bucket, before each segment: a redirect drops the query.
  expect(sent.findLast(({ origin }) => origin === platform.base)?.searchParams.get("CMCD")).toContain("sid=");
  expect(sent.filter(({ origin, search }) => origin === s3.endpoint && search.includes("CMCD"))).toEqual([]);
  const { body: download } = await as(key).getDownload(asset.id);
  expect(new URL(download.url).origin).toBe(s3.endpoint);
  const came = await fetch(download.url);
  expect(came.headers.get("content-disposition")).toContain("clip.mp4");
  expect(bytes.equals(Buffer.from(await came.arrayBuffer()))).toBe(true);
  const { body: subtitles } = await as(key).listSubtitles(asset.id);
  expect(await (await fetch(subtitles[0].url)).text()).toBe(VTT);

  const check = await run(["admin", "storage", "check", "--data", platform.dataDir, "--json"], {
    env: { VODBOX_ADMIN_TOKEN: platform.admin },
  });
  expect(JSON.parse(check.stdout).findings.filter((finding: { ok: boolean }) => !finding.ok)).toEqual([]);
  expect(check.code).toBe(0);

  expect(await keysUnder("real")).not.toEqual([]);
  expect((await as(key).deleteAsset(asset.id)).status).toBe(204);
  await expect.poll(() => keysUnder("real"), { timeout: 30_000 }).toEqual([]);
});

test("in parts, by push and by tus a source arrives on S3, and nothing else remains", async () => {
  const { as, call, key, base } = platform;
  const folder = emptyFolder();
  const film = randomBytes(40 * 2 ** 20);
  writeFileSync(join(folder, "film.mp4"), film);
  const env = { VODBOX_SERVER: base, VODBOX_KEY: key, VODBOX_CACHE_DIR: folder };
  const pushed = await run(["push", join(folder, "film.mp4"), "--jobs", "3", "--json"], { env });
  expect(pushed).toMatchObject({ code: 0 });

  const headers = { "tus-resumable": "1.0.0", "upload-length": String(film.length) };
  const at = (await call("POST", "/api/v1/uploads/tus", { key, headers })).headers.get("location") as string;
  for (let offset = 0; offset < film.length; ) {
    const more = { "upload-offset": String(offset), "content-type": "application/offset+octet-stream" };
    const raw = new Uint8Array(film.subarray(offset, offset + 15_000_000));
    const answer = await call("PATCH", at, { key, raw, headers: { "tus-resumable": "1.0.0", ...more } });
    expect(answer.status, answer.text).toBe(204);
    offset = Number(answer.headers.get("upload-offset"));
  }
  const byTus = await call("GET", at.replace("/tus", ""), { key });
  expect(byTus.body).toMatchObject({ status: "completed", bytes_received: film.length });
  for (const id of [JSON.parse(pushed.stdout)[0].asset_id, byTus.body.asset_id]) {
    const { body: download } = await as(key).getDownload(id);
    expect(film.equals(Buffer.from(await (await fetch(download.url)).arrayBuffer()))).toBe(true);
  }

  const begun = await as(key).initiateMultipartUpload({ filename: "b.mp4", bytes_expected: film.length });
  const { body: signed } = await as(key).signUploadPart(begun.body.id, { part_number: 2 });
  const part = await fetch(signed.url, { method: "PUT", body: new Uint8Array(film.subarray(0, begun.body.part_size)) });
  const state = await as(key).getUpload(begun.body.id);
  const etag = part.headers.get("etag");
  expect(state.body.parts).toEqual([{ part_number: 2, bytes: begun.body.part_size, etag }]);
  const refused = await as(key).unchecked.completeMultipartUpload(begun.body.id, {
    parts: [
      { part_number: 1, etag },
      { part_number: 2, etag },
    ],
    bytes_received: film.length,
  });
  expect([refused.status, refused.error.code]).toEqual([422, "bytes_mismatch"]);
  for (let time = 0; time < 2; time++) expect((await as(key).abortMultipartUpload(begun.body.id)).status).toBe(204);
  const store = s3Store({ ...s3, bucket, pathStyle: true, prefix: "real/" });
  for await (const left of store.listMultiparts("")) expect(left).toBeUndefined();
});

nightly("encoded by push it is uploaded directly to S3, including the source, and plays from there", async () => {
  const { as, key, base, clip } = platform;
  const folder = emptyFolder();
  writeFileSync(join(folder, "clip.mp4"), clip);
  const env = { VODBOX_SERVER: base, VODBOX_KEY: key, VODBOX_CACHE_DIR: folder };
  const before = (await as(key).listJobs()).body.length;
  const pushed = await run(["push", "--encode", join(folder, "clip.mp4"), "--json"], { env });
  expect(pushed.code, pushed.stderr).toBe(0);
  const [{ asset_id }] = JSON.parse(pushed.stdout);
  expect((await as(key).listJobs()).body).toHaveLength(before);
  const { body: playback } = await as(key).getPlayback(asset_id);
  // Its redirects lead to another host, about which ffmpeg warns when it reuses a connection.
  expect(await complaints("-http_persistent", "0", "-i", playback.hls_url, "-f", "null", "-")).toBe("");
  const picture = new URL(playback.thumbnail_url);
  picture.search += "&time=0.5&width=64";
  // Generated from these objects, then read from storage itself.
  for (let turn = 0; turn < 2; turn++) {
    const answer = await fetch(picture);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
    expect(Buffer.from(await answer.arrayBuffer()).toString("hex", 0, 2)).toBe("ffd8");
  }
  expect((await keysUnder("real")).filter((each) => each.includes("/pictures/"))).toHaveLength(1);
  const { body: download } = await as(key).getDownload(asset_id);
  expect(clip.equals(Buffer.from(await (await fetch(download.url)).arrayBuffer()))).toBe(true);
  expect((await keysUnder("real")).filter((each) => each.includes("/ingest/"))).toEqual([]);
});

let apps = 0;
async function published(settings: Record<string, unknown> = {}) {
  const app = await testApp({ ...settingsFor(`app-${++apps}`), ...settings });
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const { asset, contract } = await readyAsset(app, key, { playback_policy: "public" });
  const version = contract.outputs.prefix.split("/").at(-2) as string;
  return { app, key, asset, tenant, media: `/media/${asset.external_id}`, version };
}
const egressOf = async (app: TestApp, id: number) => {
  await app.runTask("count-egress");
  const { body } = await app.as({ admin: app.admin }).listTenants();
  return body.find((tenant) => tenant.id === id)?.egress_bytes ?? 0;
};

test("redirect: segments redirect to S3 for a while, texts are served", async () => {
  const { app, media, version, tenant } = await published();
  for (const file of ["master.m3u8", "manifest.mpd", `${version}/low/playlist.m3u8`, "thumbnail.jpg"])
    expect((await app.call("GET", `${media}/${file}`)).status, file).toBe(200);
  const before = await egressOf(app, tenant.id);
  const sent = await app.call("GET", `${media}/${version}/low/1.m4s`);
  expect([sent.status, sent.headers.get("cache-control")]).toEqual([302, "public, max-age=300"]);
  expect(sent.headers.get("access-control-allow-origin")).toBe("*");
  const address = sent.headers.get("location") as string;
  const got = await fetch(address, { headers: { origin: "null" } });
  expect([await got.text(), got.headers.get("content-type")]).toEqual(["segment", "video/iso.segment"]);
  expect(got.headers.get("access-control-allow-origin")).toBe("*");
  await app.call("GET", `${media}/${version}/low/1.m4s`, { headers: { range: "bytes=2-3" } });
  expect(await egressOf(app, tenant.id)).toBe(before + "segment".length + 2);
  const head = await app.call("HEAD", `${media}/${version}/low/1.m4s`);
  expect([head.status, head.headers.get("content-length")]).toEqual([200, "7"]);
  expect((await app.call("GET", `${media}/${version}/low/2.m4s`)).status).toBe(404);
  expect((await app.call("GET", `${media}/other/low/1.m4s`)).status).toBe(404);
});

test("rewrite: playlists refer to S3 themselves", async () => {
  const { app, media, version } = await published({ s3_delivery: "rewrite" });
  expect((await app.call("GET", `${media}/master.m3u8`)).text).toContain(`${version}/low/playlist.m3u8`);
  const playlist = await app.call("GET", `${media}/${version}/low/playlist.m3u8`);
  expect([playlist.headers.get("cache-control"), playlist.headers.get("etag")]).toEqual(["public, no-store", null]);
  const [address = ""] = /^http.*$/m.exec(playlist.text) ?? [];
  expect(new URL(address).origin).toBe(s3.endpoint);
  expect(await (await fetch(address)).text()).toBe("segment");
  // A file that is not a playlist has only one way of delivery.
  expect((await app.call("GET", `${media}/${version}/low/1.m4s`)).status).toBe(302);
});

nightly("proxy: everything comes from the server, with ranges", async () => {
  const { app, media, version } = await published({ s3_delivery: "proxy", segment_cache_bytes: 0 });
  const whole = await app.call("GET", `${media}/${version}/low/1.m4s`);
  expect([whole.status, whole.text]).toEqual([200, "segment"]);
  const part = await app.call("GET", `${media}/${version}/low/1.m4s`, { headers: { range: "bytes=1-3" } });
  expect([part.status, part.text, part.headers.get("content-range")]).toEqual([206, "egm", "bytes 1-3/7"]);
});

nightly("abandoned uploads are swept, sessions and parts", async () => {
  const { app, key, tenant } = await published();
  const started = await app.as(key).initiateUpload({ filename: "late.mp4", bytes_expected: 4 });
  await app.call("PUT", started.body.upload_url, { raw: "late", headers: started.body.upload_headers });
  const { objects } = app.opened.app;
  if (!objects) throw new Error("There is no storage");
  const parts = `tenants/${tenant.id}/sources/parts`;
  await objects.createMultipart(parts, { bytes: 1, partSize: 1 });
  const underWay = async () => (await Array.fromAsync(objects.listMultiparts(""))).map((one) => one.key);
  app.advance(86_400_000);
  await app.runTask("sweep-parts");
  expect(await underWay()).toEqual([parts]);
  await app.runTask("expire-uploads");
  // What a busy S3 server did not delete is tried again ten minutes later.
  await until("the bytes of the session are deleted", async () => {
    const { length } = (await objects.list(`tenants/${tenant.id}/sources/`)).objects;
    if (length > 1) {
      app.advance(600_000);
      await app.runTask("sweep-objects");
    }
    return length === 1;
  });
  app.advance(86_400_000 + 1000);
  await app.runTask("sweep-parts");
  expect(await underWay()).toEqual([]);
});

test("unavailable S3 is 503, and reported by all checks", async () => {
  const app = await testApp({ ...settingsFor("away"), s3_endpoint: "http://127.0.0.1:9" });
  expect((await app.as().getReadiness()).error.code).toBe("not_ready");
  const { body } = await app.as({ admin: app.admin }).checkStorage();
  expect(body).toMatchObject({ ok: false, kind: "s3", findings: [{ check: "endpoint", ok: false }] });
  const key = await app.key((await app.tenant()).id);
  const started = await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 1 });
  const completed = await app.as(key).completeUpload(started.body.id, { bytes_received: 1 });
  expect([completed.status, completed.error.code]).toEqual([503, "storage_unavailable"]);
});

test("incomplete settings are refused, all at once; a check that finds faults exits with 1", async () => {
  const data = join(emptyFolder(), "data");
  const serve = (env: Record<string, string>, ...args: string[]) => run([...args, "--data", data], { env });
  const lacking = await serve({ VODBOX_STORAGE: "s3", VODBOX_S3_BUCKET: "b2b" }, "serve");
  expect(lacking.code).toBe(2);
  expect(lacking.stderr).toContain(
    "VODBOX_STORAGE=s3 also needs VODBOX_S3_ENDPOINT, VODBOX_S3_ACCESS_KEY_ID, VODBOX_S3_SECRET_ACCESS_KEY.",
  );
  const wrong = asEnvironment({ ...settingsFor("x"), s3_secret_access_key: "not-the-secret" });
  expect((await serve(wrong, "admin", "tenant", "create", "--name", "T", "--slug", "t")).code).toBe(0);
  const checked = await serve(wrong, "admin", "storage", "check");
  expect(checked.code).toBe(1);
  expect(checked.stdout).toMatch(/^FAULT +bucket +.*VODBOX_S3_SECRET_ACCESS_KEY/m);
});
