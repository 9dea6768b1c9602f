import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased } from "#test/support/batches.ts";
import { until } from "#test/support/descendants.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let tenant: { id: number };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});
const set = async (status: "suspended" | "active") => {
  const changed = await app.as({ admin: app.admin }).updateTenant(tenant.id, { status });
  expect(changed.status).toBe(200);
  // With a shared database the state is read again in each second of this clock.
  const second = () => Math.floor(performance.now() / 1000);
  const changedIn = second();
  if (process.env.VODBOX_TEST_DATABASE) await until("the next second", () => second() > changedIn);
};
const path = (url: string) => url.replace("http://vodbox.test", "");

/** Every URL that was issued while the tenant was active, and needs no API key. */
async function addresses() {
  const open = await readyAsset(app, key, { playback_policy: "public" });
  const signed = await readyAsset(app, key, { playback_policy: "signed" });
  const subtitle = await subtitled(app, key, signed.asset.id);
  const gets: string[] = [];
  for (const { asset } of [open, signed]) {
    const { body } = await app.as(key).getPlayback(asset.id);
    gets.push(...[body.hls_url, body.dash_url, body.thumbnail_url, body.storyboard_url, body.embed_url].map(path));
    const token = asset.playback_policy === "signed" ? `?token=${body.token}` : "";
    for (const page of ["watch", "embed"]) gets.push(`/${page}/${asset.external_id}${token}`);
    gets.push(`/embed/${asset.external_id}/player.json${token}`);
    const master = await app.call("GET", body.hls_url);
    const list = new URL(/^[^#\n]+$/m.exec(master.text)?.[0] as string, body.hls_url).href;
    const media = await app.call("GET", list);
    // A segment that is cached in memory by now.
    const segment = new URL(/^[^#\n]+$/m.exec(media.text)?.[0] as string, list).href;
    expect((await app.call("GET", segment)).text).toBe("segment");
    gets.push(path(list), path(segment));
    for (const one of body.subtitles) gets.push(path(one.url));
  }
  const download = await app.as(key).getDownload(open.asset.id);
  gets.push(path(download.body.url), path(subtitle.url));
  return { gets, open, signed };
}

async function uploads() {
  const fields = { filename: "a.mp4", bytes_expected: 3 };
  const { body: put } = await app.as(key).initiateUpload(fields);
  const { body: parts } = await app.as(key).initiateMultipartUpload(fields);
  const { body: part } = await app.as(key).signUploadPart(parts.id, { part_number: 1 });
  const batch = await leased(app, key);
  const { body: batchUpload } = await batch.want("a.m4s", "abc");
  const tus = await app.call("POST", "/api/v1/uploads/tus", {
    key,
    headers: { "tus-resumable": "1.0.0", "upload-length": "3" },
  });
  const puts = [put.upload_url, part.url, batchUpload.upload_url] as string[];
  return { puts, put, tus: new URL(tus.headers.get("location") as string).pathname };
}

describe("a suspended tenant", () => {
  test("is served to no one, by no URL issued before, until it is active again", async () => {
    const { gets } = await addresses();
    const { puts, tus } = await uploads();
    for (const get of gets) expect([get, (await app.call("GET", get)).status]).toEqual([get, 200]);
    await set("suspended");
    for (const get of gets)
      for (const method of ["GET", "HEAD"]) {
        const answer = await app.call(method, get);
        expect([method, get, answer.status]).toEqual([method, get, 403]);
        if (method === "GET" && !/^\/(watch|embed)\/[^/]+$/.test(new URL(get, "http://x").pathname))
          expectError(answer, 403, "tenant_suspended", get);
        expect(answer.text).not.toContain("segment");
      }
    for (const put of puts) {
      expectError(await app.call("PUT", put, { raw: "abc" }), 403, "tenant_suspended", put);
      const headers = { "content-range": "bytes 0-1/3" };
      expectError(await app.call("PUT", put, { raw: "ab", headers }), 403, "tenant_suspended", put);
    }
    const patch = { "tus-resumable": "1.0.0", "upload-offset": "0", "content-type": "application/offset+octet-stream" };
    expectError(await app.call("PATCH", tus, { key, raw: "abc", headers: patch }), 401, "unauthorized");
    expectError(await app.as(key).listAssets(), 401, "unauthorized");
    const oembed = `/oembed?url=${encodeURIComponent(`http://vodbox.test${gets.find((get) => get.startsWith("/watch/"))}`)}`;
    expectError(await app.call("GET", oembed), 401, "tenant_suspended");

    await set("active");
    for (const get of gets) expect([get, (await app.call("GET", get)).status]).toEqual([get, 200]);
    for (const put of puts) expect((await app.call("PUT", put, { raw: "abc" })).status, put).toBe(200);
    expect((await app.call("GET", oembed)).status).toBe(200);
  });

  test("stores no bytes of a request that began before", async () => {
    const { put } = await uploads();
    let send: (text: string | null) => void = () => {};
    const body = new ReadableStream({
      start(controller) {
        send = (text) => (text === null ? controller.close() : controller.enqueue(new TextEncoder().encode(text)));
      },
    });
    const answer = app.call("PUT", put.upload_url, { raw: body });
    send("ab");
    await app.as().getHealth();
    await set("suspended");
    send("c");
    send(null);
    expectError(await answer, 403, "tenant_suspended");
    const [, objectKey = ""] = /\/objects\/([^?]+)/.exec(put.upload_url) ?? [];
    expect(await app.opened.app.objects?.head(objectKey)).toBeNull();
  });

  test("keeps its running encodes: no attempt is lost", async () => {
    const made = await uploaded(app, key);
    const { body: contract } = await next(app);
    await set("suspended");
    expect((await app.call("GET", contract.source.url)).status).toBe(200);
    const paths = await putArtifacts(app, contract);
    const media = { duration_seconds: 4, width: 640, height: 360, frame_rate: 30, renditions: [] };
    expect((await callback(app, contract, "complete", { ...paths, media })).status).toBe(200);
    expectError(await app.call("GET", `/media/${made.asset.external_id}/master.m3u8`), 403, "tenant_suspended");
    await set("active");
    expect((await app.as(key).getAsset(made.asset.id)).body.playback_status).toBe("ready");
  });

  test("does not affect others", async () => {
    const other = await app.tenant();
    const { asset } = await readyAsset(app, await app.key(other.id), { playback_policy: "public" });
    await set("suspended");
    expect((await app.call("GET", `/media/${asset.external_id}/master.m3u8`)).status).toBe(200);
    expectError(await app.call("GET", "/media/987654/master.m3u8"), 404, "not_found");
  });
});
