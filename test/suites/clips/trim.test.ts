import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import {
  clipOf,
  createClip,
  downloaded,
  encodedAgain,
  FPS,
  film,
  filmAsset,
  frameHashes,
  SECONDS,
} from "#test/support/clips.ts";
import { databaseBytes } from "#test/support/database-bytes.ts";
import { checkup } from "#test/support/doctor.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";

let files: Awaited<ReturnType<typeof film>>;
let hashes: string[];
let app: TestApp;
let tenantId: number;
let key: string;
let asset: Awaited<ReturnType<typeof filmAsset>>;

beforeAll(async () => {
  files = await film();
});
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
  asset = await filmAsset(app, key, files, { playback_policy: "public", title: "Film" });
  hashes ??= await framesOf(asset.id);
});
afterEach(() => app.close());

const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
const framesOf = async (id: number) => frameHashes(await downloaded(app, (await playback(id)).hls_url));
const expectPlays = async (id: number, from: number, to: number) =>
  expect(await framesOf(id)).toEqual(hashes.slice(from * FPS, to * FPS));
const trim = (id: number, body: Record<string, unknown>, by = key) =>
  app.call("POST", `/api/v1/assets/${id}/trim`, { key: by, body });
const stored = async () => (await app.opened.app.objects?.list("tenants/"))?.objects ?? [];
const segments = async () => (await stored()).filter(({ key }) => key.endsWith(".m4s")).length;
const text = async (url: string) => (await app.opened.server.fetch(new Request(url))).text();

async function collect(): Promise<void> {
  app.advance(3_600_000);
  await app.runTask("sweep-objects");
}

/** The tenant counts exactly what is in storage, the assets count it once, and the doctor finds no fault. */
async function expectCounted(): Promise<void> {
  await collect();
  const bytes = (await stored()).reduce((sum, one) => sum + one.bytes, 0);
  const { body: assets } = await app.as(key).listAssets();
  const sum = assets.reduce((total: number, one: { storage_bytes: number }) => total + one.storage_bytes, 0);
  const { body } = await app.as(key).listTenants();
  expect([sum, body[0].storage_bytes]).toEqual([bytes, bytes + (await databaseBytes(app, body[0].id))]);
  app.advance(25 * 3_600_000);
  const { of } = await checkup(app);
  for (const check of ["missing", "unreferenced"]) expect(of(check)).toMatchObject({ ok: true, fixed: 0 });
}

test("a trimmed asset plays the part, keeps its source, and the rest of its media is deleted", async () => {
  const before = await segments();
  await app.newEvents();
  const { status, body } = await trim(asset.id, { start_seconds: 5, end_seconds: 11.5 });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    id: asset.id,
    external_id: asset.external_id,
    title: "Film",
    playback_status: "ready",
    duration_seconds: 8,
    parent_asset_id: null,
    input_status: "uploaded",
    width: 320,
    thumbnail_path: null,
  });
  expect(body.source_key).not.toBe("");
  expect(await app.newEvents()).toMatchObject([{ type: "video.asset.ready", data: { asset_id: String(asset.id) } }]);
  await expectPlays(asset.id, 4, 12);
  await expectCounted();
  expect(await segments()).toBeLessThan(before);
  await expectPlays(asset.id, 4, 12);
  // Once more, now at boundaries.
  expect((await trim(asset.id, { start_seconds: 4, end_seconds: 8, mode: "exact" })).body.duration_seconds).toBe(4);
  await expectCounted();
  await expectPlays(asset.id, 8, 12);
  expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
  await collect();
  expect(await stored()).toEqual([]);
});

nightly("clips of it play on, and a trimmed clip leaves its asset as it is", async () => {
  const clip = await clipOf(app, key, asset.id, 0, 18);
  const exact = (await createClip(app, key, asset.id, { start_seconds: 1, end_seconds: 17, mode: "exact" })).body;
  await workOnce(app);
  await trim(asset.id, { start_seconds: 12, end_seconds: 16 });
  await expectCounted();
  await expectPlays(clip.id, 0, 18);
  await expectPlays(asset.id, 12, 16);
  expect((await trim(clip.id, { start_seconds: 4, end_seconds: 8 })).status).toBe(200);
  // Its first segment is its own.
  expect((await trim(exact.id, { start_seconds: 0, end_seconds: 7 })).body.duration_seconds).toBe(7);
  await expectCounted();
  await expectPlays(clip.id, 4, 8);
  expect((await framesOf(exact.id)).slice(FPS)).toEqual(hashes.slice(2 * FPS, 8 * FPS));
  await expectPlays(asset.id, 12, 16);
  for (const { id } of [asset, clip, exact]) expect((await app.as(key).deleteAsset(id)).status).toBe(204);
  await collect();
  expect(await stored()).toEqual([]);
});

test("subtitles, tracks and the storyboard are cut; those without cues in the range are deleted", async () => {
  const cue = (times: string, words: string) => `${times}\n${words}\n\n`;
  const vtt = (...cues: string[]) => `WEBVTT\n\n${cues.join("")}`;
  const inside = vtt(cue("00:03.000 --> 00:05.000", "across"), cue("00:13.000 --> 00:14.000", "behind"));
  await subtitled(app, key, asset.id, { language: "en" }, inside);
  await subtitled(app, key, asset.id, { language: "de" }, vtt(cue("00:00.000 --> 00:01.000", "vorher")));
  const put = (body: unknown) => app.as(key).unchecked.setTrack(asset.id, body);
  await put({ kind: "chapter", name: "parts", cues: [0, 6000].map((start_ms) => ({ start_ms, payload: {} })) });
  await put({ kind: "scene", cues: [{ start_ms: 1000, end_ms: 2000, payload: {} }] });
  await put({ kind: "index", name: "elsewhere", storage_key: "s3://mine/index" });
  await trim(asset.id, { start_seconds: 4, end_seconds: 12 });
  const { subtitles, storyboard_url } = await playback(asset.id);
  expect(subtitles.map(({ language }: { language: string }) => language)).toEqual(["en"]);
  expect(await text(subtitles[0].url)).toBe("WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nacross\n");
  expect(await text(storyboard_url)).toMatch(/--> 00:00:08\.000\n\S+\n*$/);
  const { body: tracks } = await app.as(key).listTracks(asset.id);
  expect(tracks.map((one) => [one.kind, one.cues?.map((cue) => cue.start_ms)])).toEqual(
    expect.arrayContaining([
      ["chapter", [0, 2000]],
      ["index", undefined],
    ]),
  );
  expect(tracks).toHaveLength(2);
  await expectCounted();
});

nightly("an asset that is encoded again has its full length", async () => {
  await trim(asset.id, { start_seconds: 4, end_seconds: 12 });
  const clip = await clipOf(app, key, asset.id, 0, 4);
  await encodedAgain(app, key, asset.id, files);
  await expectCounted();
  await expectPlays(asset.id, 0, SECONDS);
  await expectPlays(clip.id, 4, 8);
  await app.as(key).deleteAsset(clip.id);
  await expectCounted();
  await expectPlays(asset.id, 0, SECONDS);
});

test("is trimmed once with an Idempotency-Key, also when its job is queued", async () => {
  const repeated = async (name: string, body: Record<string, unknown>) => {
    const send = (changed = {}) =>
      app.as({ key, headers: { "Idempotency-Key": name } }).unchecked.trimAsset(asset.id, { ...body, ...changed });
    const first = await send();
    const again = await send();
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expectError(await send({ end_seconds: 7 }), 422, "idempotency_key_reused");
    return first.status;
  };
  expect(await repeated("one", { start_seconds: 4, end_seconds: 12 })).toBe(200);
  await expectPlays(asset.id, 4, 12);
  expect(await repeated("two", { start_seconds: 1, end_seconds: 5, mode: "exact" })).toBe(202);
  expect(await workOnce(app)).toBe("completed");
  expect(await framesOf(asset.id)).toHaveLength(4 * FPS);
});

test("is refused for ranges that are not in the video, and for other tenants", async () => {
  const range = { start_seconds: 4, end_seconds: 8 };
  expectError(await trim(asset.id, { ...range, end_seconds: 19 }), 422, "validation_failed");
  expectError(await trim(asset.id, { start_seconds: 4 }), 422, "parameter_missing");
  expectError(await trim(asset.id, range, await app.key((await app.tenant()).id)), 404, "not_found");
  expectError(await trim(asset.id, range, await app.key(tenantId, ["assets:read"])), 403, "forbidden_scope");
  expectError(await trim((await uploaded(app, key)).asset.id, range), 422, "asset_not_ready");
  await expectPlays(asset.id, 0, SECONDS);
});
