import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
let asset: { id: number; external_id: string };
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  ({ asset } = await readyAsset(app, key, { title: "Film" }));
});
const add = async (policy: string) => (await app.as(key).createPlaybackId(asset.id, { policy })).body.id as string;
const read = async () => (await app.as(key).getAsset(asset.id)).body;
const tokenOf = async (id: string | number) => (await app.as(key).getPlayback(id)).body.token;
const statusOf = async (url: string) => (await app.call("GET", url)).status;

describe("playback ids", () => {
  test("are listed after the first one, which cannot be deleted", async () => {
    const first = { id: asset.external_id, policy: "signed" };
    expect((await read()).playback_ids).toEqual([first]);
    const made = await app.as(key).createPlaybackId(asset.id, { policy: "public" });
    expect([made.status, made.body]).toEqual([201, { id: expect.stringMatching(/^vid_\w{22}$/), policy: "public" }]);
    expect((await read()).playback_ids).toEqual([first, made.body]);
    const [listed] = (await app.as(key).listAssets()).body;
    expect(listed.playback_ids).toEqual([first, made.body]);
    expectError(await app.as(key).deletePlaybackId(asset.id, asset.external_id), 409, "asset_conflict");
    expect((await app.as(key).deletePlaybackId(asset.id, made.body.id)).status).toBe(204);
    expectError(await app.as(key).deletePlaybackId(asset.id, made.body.id), 404, "not_found");
    expect((await read()).playback_ids).toEqual([first]);
  });

  test("have a policy of their own, at each public URL, until they are deleted", async () => {
    const open = await add("public");
    const urls = (id: string) => [
      `/media/${id}/master.m3u8`,
      `/media/${id}/manifest.mpd`,
      `/media/${id}/thumbnail.jpg`,
      `/media/${id}/storyboard.vtt`,
      `/embed/${id}/player.json`,
      `/oembed?url=${encodeURIComponent(`http://vodbox.test/watch/${id}`)}`,
    ];
    for (const url of urls(open)) expect([url, await statusOf(url)]).toEqual([url, 200]);
    for (const page of ["watch", "embed"]) {
      const { status, text } = await app.call("GET", `/${page}/${open}`);
      expect(status).toBe(200);
      expect(text).toContain(`playback-id="${open}"`);
      expect(text).not.toContain(asset.external_id);
    }
    const player = await app.call("GET", `/embed/${open}/player.json`);
    expect(player.body).toMatchObject({ id: open, playback_policy: "public", hls_url: `/media/${open}/master.m3u8` });
    // A public id says nothing about the signed one.
    for (const url of urls(asset.external_id)) expect([401, 403]).toContain(await statusOf(url));
    expect((await app.as(key).getPlayback(open)).body).toMatchObject({
      asset_id: asset.id,
      external_id: asset.external_id,
      playback_policy: "public",
      hls_url: `http://vodbox.test/media/${open}/master.m3u8`,
    });
    const segment = `/media/${open}/${(await app.call("GET", `/media/${open}/master.m3u8`)).text.split("\n")[2]}`;
    expect(await statusOf(segment)).toBe(200);
    await app.as(key).deletePlaybackId(asset.id, open);
    for (const url of [...urls(open), segment, `/watch/${open}`])
      expect([url, await statusOf(url)]).toEqual([url, 404]);
  });

  test("that are signed need a token of that id, or of the asset's number", async () => {
    await app.as(key).updateAsset(asset.id, { video_asset: { playback_policy: "public" } });
    const one = await add("signed");
    const other = await add("signed");
    const at = (id: string, token: string) => statusOf(`/media/${id}/master.m3u8?token=${token}`);
    const token = await tokenOf(one);
    expect(await statusOf(`/media/${asset.external_id}/master.m3u8`)).toBe(200);
    expect(await statusOf(`/media/${one}/master.m3u8`)).toBe(403);
    expect([await at(one, token), await at(other, token)]).toEqual([200, 403]);
    expect(await at(one, await tokenOf(asset.id))).toBe(403);
    const below = /(~\S+playlist\.m3u8)/.exec((await app.call("GET", `/media/${one}/master.m3u8?token=${token}`)).text);
    expect(await statusOf(`/media/${one}/${below?.[1]}`)).toBe(200);
  });

  test("are recorded as views of the asset", async () => {
    const open = await add("public");
    const at = { session_id: "session-1", viewer_id: "viewer-1", occurred_at: new Date().toISOString() };
    const events = [{ external_id: open, event: "play", position_seconds: 0, ...at }];
    expect((await app.as().recordPlaybackEvents({ events })).status).toBe(202);
    const { body } = await app.as(key).getAssetAnalytics(asset.id);
    expect(body.play_count).toBe(1);
  });

  test("belong to one tenant and one asset, and to nothing that was deleted", async () => {
    const own = await add("public");
    const stranger = await app.key((await app.tenant()).id);
    const { asset: second } = await readyAsset(app, key);
    expectError(await app.as(stranger).createPlaybackId(asset.id, { policy: "public" }), 404, "not_found");
    expectError(await app.as(stranger).deletePlaybackId(asset.id, own), 404, "not_found");
    expectError(await app.as(key).deletePlaybackId(second.id, own), 404, "not_found");
    expectError(await app.as(stranger).getPlayback(own), 404, "not_found");
    expectError(await app.as(key).createPlaybackId(asset.id, { policy: "drm" }), 422, "validation_failed");
    expectError(await app.as(key).unchecked.createPlaybackId(asset.id, {}), 422, "parameter_missing");
    const reader = await app.key((await app.tenant()).id, ["assets:read"]);
    expectError(await app.as(reader).createPlaybackId(asset.id, { policy: "public" }), 403, "forbidden_scope");
    await app.as(key).deleteAsset(asset.id);
    expect(await statusOf(`/media/${own}/master.m3u8`)).toBe(404);
    expect(await app.opened.app.db.all("SELECT * FROM playback_ids")).toEqual([]);
  });

  test("are at most 100 of an asset, and cannot sign what another server delivers", async () => {
    for (let n = 1; n < 100; n++) await add("public");
    expectError(await app.as(key).createPlaybackId(asset.id, { policy: "public" }), 422, "playback_id_limit_reached");
    const external = {
      title: "E",
      input_status: "pending",
      playback_status: "ready",
      provider: "external_serve",
      source_key: "e",
      source_bytes: 0,
      storage_bytes: 0,
      duration_seconds: 1,
      manifest_url: "https://cdn.example.com/a.m3u8",
    };
    const tenant_id = (await read()).tenant_id;
    const { body } = await app.as(key).createAsset({ tenant_id, video_asset: external });
    const signed = await app.as(key).createPlaybackId(body.asset.id, { policy: "signed" });
    expectError(signed, 422, "validation_failed");
  });
});
