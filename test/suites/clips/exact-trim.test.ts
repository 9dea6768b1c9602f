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
import { callback, next } from "#test/support/flow.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";

let files: Awaited<ReturnType<typeof film>>;
let hashes: string[];
let app: TestApp;
let key: string;
let asset: Awaited<ReturnType<typeof filmAsset>>;

beforeAll(async () => {
  files = await film();
});
beforeEach(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  key = await app.key((await app.tenant()).id);
  asset = await filmAsset(app, key, files, { playback_policy: "public", title: "Film" });
  hashes ??= await framesOf(asset.id);
});
afterEach(() => app.close());

const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
const shown = async (id: number) => (await app.as(key).getAsset(id)).body;
const fetched = async (url: string) => app.opened.server.fetch(new Request(url));
const text = async (url: string) => (await fetched(url)).text();
const framesOf = async (id: number) => frameHashes(await downloaded(app, (await playback(id)).hls_url));
const trim = (id: number, start_seconds: number, end_seconds: number) =>
  app.as(key).trimAsset(id, { start_seconds, end_seconds, mode: "exact" });
const stored = async () => (await app.opened.app.objects?.list("tenants/"))?.objects ?? [];

/** Expects a range in seconds of the film to play: the frames of whole GOPs are its own. */
async function expectPlays(id: number, start: number, end: number): Promise<void> {
  const frames = await framesOf(id);
  const from = Math.round(start * FPS);
  const to = Math.round(end * FPS);
  expect(frames).toHaveLength(to - from);
  const gop = 2 * FPS;
  const first = Math.ceil(from / gop) * gop;
  const last = to === hashes.length ? to : Math.floor(to / gop) * gop;
  expect(frames.slice(first - from, last - from)).toEqual(hashes.slice(first, last));
  expect((await shown(id)).duration_seconds).toBeCloseTo(end - start, 3);
}

async function collect(): Promise<void> {
  app.advance(3_600_000);
  await app.runTask("sweep-objects");
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

/** Every segment that a playlist names, with those of its renditions. */
async function segmentsOf(master: string): Promise<string[]> {
  const lists = (await text(master)).split("\n").filter((line) => /^[^#].*\.m3u8/.test(line));
  const urls = lists.map((list) => new URL(list, master).href);
  const all = await Promise.all(
    urls.map(async (url) =>
      (await text(url)).split("\n").flatMap((line) => (/^[^#]/.test(line) ? [new URL(line, url).href] : [])),
    ),
  );
  return all.flat();
}

test("an asset that is trimmed at frames plays its old media until the job is complete, and for an hour", async () => {
  await app.newEvents();
  const before = await segmentsOf((await playback(asset.id)).hls_url);
  const { status, body: job } = await trim(asset.id, 3.2, 13.4);
  expect([status, job]).toMatchObject([202, { asset_id: asset.id, status: "queued" }]);
  expect(await shown(asset.id)).toMatchObject({ playback_status: "ready", duration_seconds: SECONDS });
  await expectPlays(asset.id, 0, SECONDS);
  // The job encodes GOPs of these media: they are not changed meanwhile.
  for (const [path, body] of [
    ["trim", { start_seconds: 4, end_seconds: 8 }],
    ["trim", { start_seconds: 4.2, end_seconds: 8, mode: "exact" }],
    ["reencode", {}],
  ] as const)
    expectError(await app.call("POST", `/api/v1/assets/${asset.id}/${path}`, { key, body }), 409, "asset_conflict");
  expect(await workOnce(app)).toBe("completed");
  const types = (await app.newEvents()).map(({ type }) => type);
  expect(types.filter((type) => type !== "video.asset.encoded")).toEqual([
    ...["video.job.queued", "video.job.started", "video.asset.ready"],
  ]);
  expect(await shown(asset.id)).toMatchObject({
    id: asset.id,
    title: "Film",
    playback_status: "ready",
    input_status: "uploaded",
    error: null,
    width: 320,
    parent_asset_id: null,
    thumbnail_path: null,
    progress: 100,
  });
  await expectPlays(asset.id, 3.2, 13.4);
  for (const url of before) expect((await fetched(url)).status, url).toBe(200);
  await expectCounted();
  await expectPlays(asset.id, 3.2, 13.4);
  expect((await fetched(before[0] as string)).status).toBe(404);
  // Once more: its own first segment and shared ones are now the old media.
  const middle = await segmentsOf((await playback(asset.id)).hls_url);
  expect((await trim(asset.id, 1, 8.2)).status).toBe(202);
  expect(await workOnce(app)).toBe("completed");
  await app.runTask("sweep-objects");
  for (const url of middle) expect((await fetched(url)).status, url).toBe(200);
  await expectCounted();
  await expectPlays(asset.id, 4.2, 11.4);
  expect((await app.as(key).deleteAsset(asset.id)).status).toBe(204);
  await collect();
  expect(await stored()).toEqual([]);
});

test("clips of it play on, a clip is trimmed alone, and a new encode has the full length", async () => {
  const clip = await clipOf(app, key, asset.id, 0, 18);
  const exact = (await createClip(app, key, asset.id, { start_seconds: 1, end_seconds: 17, mode: "exact" })).body;
  expect(await workOnce(app)).toBe("completed");
  for (const [id, start, end] of [
    [asset.id, 11.4, 17],
    [clip.id, 3.6, 9],
    [exact.id, 0.4, 7.4],
  ] as const) {
    expect((await trim(id, start, end)).status).toBe(202);
    expect(await workOnce(app)).toBe("completed");
  }
  await expectCounted();
  await expectPlays(asset.id, 11.4, 17);
  await expectPlays(clip.id, 3.6, 9);
  const frames = await framesOf(exact.id);
  expect(frames).toHaveLength(7 * FPS);
  expect(frames.slice(0.6 * FPS, 6.6 * FPS)).toEqual(hashes.slice(2 * FPS, 8 * FPS));
  await encodedAgain(app, key, asset.id, files);
  await expectCounted();
  await expectPlays(asset.id, 0, SECONDS);
  await expectPlays(clip.id, 3.6, 9);
});

test("texts are those that the asset has when the job is complete", async () => {
  const vtt = (times: string, words: string) => `WEBVTT\n\n${times}\n${words}\n`;
  await subtitled(app, key, asset.id, { language: "de" }, vtt("00:00.000 --> 00:01.000", "vorher"));
  const put = (cues: unknown[]) => app.as(key).unchecked.setTrack(asset.id, { kind: "chapter", name: "parts", cues });
  await put([{ start_ms: 0, payload: {} }]);
  expect((await trim(asset.id, 4.4, 12)).status).toBe(202);
  await subtitled(app, key, asset.id, { language: "en" }, vtt("00:03.000 --> 00:05.000", "across"));
  await put([0, 6000].map((start_ms) => ({ start_ms, payload: {} })));
  expect(await workOnce(app)).toBe("completed");
  const { subtitles, storyboard_url } = await playback(asset.id);
  expect(subtitles.map(({ language }: { language: string }) => language)).toEqual(["en"]);
  expect(await text(subtitles[0].url)).toBe("WEBVTT\n\n00:00:00.000 --> 00:00:00.600\nacross\n");
  expect(await text(storyboard_url)).toMatch(/--> 00:00:07\.600\n\S+\n*$/);
  const { body: tracks } = await app.as(key).listTracks(asset.id);
  expect(tracks.map((one) => one.cues.map((cue) => cue.start_ms))).toEqual([[0, 1600]]);
  await expectCounted();
});

nightly("an asset whose trim fails plays on, and the trim is retried; other media are not trimmed", async () => {
  const fail = async () => {
    const { body: contract } = await next(app, undefined, { capabilities: { clips: 1 } });
    expect(contract).toMatchObject({ source: { url: "", local_path: null }, clip: { duration_seconds: 6 } });
    await callback(app, contract, "fail", { code: "encode_failed", message: "No.", retryable: false });
    expect(await shown(asset.id)).toMatchObject({ playback_status: "ready", error: { code: "encode_failed" } });
  };
  const retry = () => app.as(key).retryAsset(asset.id);
  await trim(asset.id, 1, 7);
  await fail();
  await expectPlays(asset.id, 0, SECONDS);
  app.advance(25 * 3_600_000);
  await app.runTask("sweep-objects");
  const { of } = await checkup(app);
  for (const check of ["missing", "unreferenced"]) expect(of(check)).toMatchObject({ ok: true });
  expect((await retry()).status).toBe(200);
  expect(await workOnce(app)).toBe("completed");
  await expectCounted();
  await expectPlays(asset.id, 1, 7);
  await trim(asset.id, 0, 5.96);
  const { body: contract } = await next(app, undefined, { capabilities: { clips: 1 } });
  await callback(app, contract, "fail", { code: "encode_failed", message: "No.", retryable: false });
  const body = { start_seconds: 0, end_seconds: 3 };
  expect((await app.as(key).trimAsset(asset.id, body)).status).toBe(200);
  expectError(await retry(), 409, "asset_conflict");
  expect((await shown(asset.id)).error).toBeNull();
  await app.as(key).deleteAsset(asset.id);
  await collect();
  expect(await stored()).toEqual([]);
});
