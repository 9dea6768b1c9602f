import { parse } from "mpd-parser";
import { beforeAll, describe, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { similarity, workOnce } from "#test/support/clip-worker.ts";
import { clipOf, createClip, downloaded, FPS, film, filmAsset, frameHashes, SECONDS } from "#test/support/clips.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next } from "#test/support/flow.ts";
import { ffprobe } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let key: string;
let parent: Awaited<ReturnType<typeof filmAsset>>;
/** The hashes of the parent's frames, and a copy of all its files. */
let hashes: string[];
let parentFile: string;
let files: Awaited<ReturnType<typeof film>>;

beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60" });
  key = await app.key((await app.tenant()).id);
  files = await film();
  parent = await filmAsset(app, key, files, { playback_policy: "public" });
  parentFile = await downloaded(app, (await playback(parent.id)).hls_url);
  hashes = await frameHashes(parentFile);
  return app.close;
});

const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
const text = async (url: string) => (await app.opened.server.fetch(new Request(url))).text();
const shown = async (id: number) => (await app.as(key).getAsset(id)).body;

async function exactClip(id: number, start_seconds: number, end_seconds: number) {
  const { status, text, body } = await createClip(app, key, id, { start_seconds, end_seconds, mode: "exact" });
  if (status !== 201) throw new Error(text);
  return body;
}

/** A clip that is ready. */
async function cut(id: number, start: number, end: number) {
  const { id: clip } = await exactClip(id, start, end);
  expect(await workOnce(app)).toBe("completed");
  return shown(clip);
}

describe("an exact clip", () => {
  test.each(
    rows(
      [
        // Within one GOP, with a whole segment and short ones at both ends, of one frame, to the end of the film.
        [5.04, 5.6],
        [3.96, 12.04],
        [9.12, 9.16],
        [7.48, SECONDS],
        // From its start, at a GOP within a segment, and others.
        [0, 9.32],
        [5, 11.5],
        [6, 10],
        [3.8, 8.2],
        [15.9, 18],
        [2.001, 2.9],
      ] as const,
      4,
    ),
  )("of %d to %d s has exactly these frames", async (start, end) => {
    const clip = await cut(parent.id, start, end);
    const [from, to] = [start, end].map((seconds) => Math.ceil(seconds * FPS - 0.05)) as [number, number];
    expect(clip).toMatchObject({ playback_status: "ready", parent_asset_id: parent.id, width: 320, error: null });
    expect(clip.duration_seconds).toBeCloseTo((to - from) / FPS, 3);
    const { hls_url, dash_url } = await playback(clip.id);
    const file = await downloaded(app, hls_url);
    const frames = await frameHashes(file);
    expect(frames).toHaveLength(to - from);
    // GOPs of 2 s that are complete are the parent's own; the others are encoded once more.
    const gop = 2 * FPS;
    const first = Math.ceil(from / gop) * gop;
    const last = to === hashes.length ? to : Math.floor(to / gop) * gop;
    if (first < last) expect(frames.slice(first - from, last - from)).toEqual(hashes.slice(first, last));
    const like = await similarity(file, parentFile, from, to - from);
    expect(like).toHaveLength(to - from);
    expect(Math.min(...like)).toBeGreaterThan(30);
    const sound = await ffprobe("-select_streams", "a", "-show_entries", "packet=pts_time", "-of", "csv=p=0", file);
    const packets = sound.split("\n").filter(Boolean).length;
    expect(Math.abs((packets * 1024) / 48_000 - (to - from) / FPS)).toBeLessThan(2.01 * (1024 / 48_000));

    const manifest = parse(await text(dash_url), { manifestUri: dash_url });
    expect(manifest.duration).toBeGreaterThanOrEqual(Math.floor(((to - from) * 1000) / FPS) / 1000);
    expect(manifest.duration).toBeLessThan((to - from) / FPS + 0.045);
    const [playlist] = manifest.playlists;
    const total = playlist?.segments.reduce((sum, segment) => sum + segment.duration, 0);
    expect(total).toBeCloseTo((to - from) / FPS, 3);
    expect(playlist?.segments[0]?.presentationTime).toBeCloseTo(0, 3);
    for (const { resolvedUri } of playlist?.segments ?? [])
      expect((await app.opened.server.fetch(new Request(resolvedUri))).status, resolvedUri).toBe(200);
  });

  test("is cut by a job, with the usual events, and shares what it does not encode", async () => {
    await app.newEvents();
    const clip = await exactClip(parent.id, 3, 13);
    expect(clip).toMatchObject({ playback_status: "processing", progress: 0, duration_seconds: 10, source_key: "" });
    expectError(await app.as(key).getPlayback(clip.id), 422, "asset_not_ready");
    // A worker that does not announce the capability does not get the job.
    expect((await next(app)).status).toBe(204);
    expect((await next(app, undefined, { capabilities: { tasks: 1 } })).status).toBe(204);
    await workOnce(app);
    expect((await app.newEvents()).map(({ type }) => type)).toEqual([
      ...["video.job.queued", "video.job.started", "video.asset.ready"],
    ]);
    const { body } = await app.call("GET", "/api/v1/assets/graph_export", { key });
    const { shared_media } = body.assets.find(({ id }: { id: number }) => id === clip.id);
    // Segments 2 and 3 of the video, counted from 1, are shared; 1 and 4 have the ends of the clip.
    expect(shared_media).toMatchObject({ prefix: parent.prefix, start_seconds: 3 });
    expect(shared_media.segments).toEqual([
      { before: "180p/", digits: 5, first: 2, last: 3, after: ".m4s" },
      { before: "audio/", digits: 5, first: 2, last: 3, after: ".m4s" },
    ]);
    const { manifest_path, storage_bytes } = await shown(clip.id);
    const folder = manifest_path.replace(/[^/]*$/, "");
    const stored = (await app.opened.app.objects?.list(folder))?.objects ?? [];
    expect(stored.map((one) => one.key.slice(folder.length)).filter((name) => /\.(m4s|mp4)$/.test(name))).toEqual([
      ...["180p/00001.m4s", "180p/00004.m4s", "audio/00001.m4s", "audio/00004.m4s"],
    ]);
    expect(storage_bytes).toBe(stored.reduce((sum, { bytes }) => sum + bytes, 0));
  });

  test("at the boundaries of segments is an instant one", async () => {
    await app.newEvents();
    expect(await exactClip(parent.id, 4, 12)).toMatchObject({ playback_status: "ready", duration_seconds: 8 });
    expect((await app.newEvents()).map(({ type }) => type)).toEqual(["video.asset.ready"]);
  });

  test("keeps its subtitles when its job is complete, and plays when its parent is deleted meanwhile", async () => {
    const { id } = await filmAsset(app, key, files, { playback_policy: "public" });
    await subtitled(app, key, id, {}, "WEBVTT\n\n00:04.000 --> 00:09.500\nWords\n");
    const clip = await exactClip(id, 5, 10);
    expect((await app.as(key).deleteAsset(id)).status).toBe(204);
    await app.runTask("sweep-objects");
    expect(await workOnce(app)).toBe("completed");
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    const { hls_url, subtitles } = await playback(clip.id);
    const frames = await frameHashes(await downloaded(app, hls_url));
    expect(frames).toHaveLength(5 * FPS);
    expect(frames.slice(FPS, 4 * FPS)).toHaveLength(3 * FPS);
    expect(await text(subtitles[0].url)).toContain("00:00:00.000 --> 00:00:04.500");
    const before = (await app.opened.app.objects?.list(`tenants/`))?.objects ?? [];
    expect((await app.as(key).deleteAsset(clip.id)).status).toBe(204);
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    const left = (await app.opened.app.objects?.list(`tenants/`))?.objects ?? [];
    expect(left.length).toBeLessThan(before.length);
    expect(left.filter((one) => one.key.includes(`/assets/${clip.id}/`) || one.key.includes(`/assets/${id}/`))).toEqual(
      [],
    );
  });

  test("can be clipped again, in both modes", async () => {
    const outer = await cut(parent.id, 3, 13);
    const whole = await clipOf(app, key, outer.id, 0, 10);
    const exact = await cut(outer.id, 0.4, 9.6);
    expect((await app.as(key).deleteAsset(outer.id)).status).toBe(204);
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    const file = await downloaded(app, (await playback(whole.id)).hls_url);
    const frames = await frameHashes(file);
    expect(frames).toHaveLength(10 * FPS);
    expect(frames.slice(FPS, 9 * FPS)).toEqual(hashes.slice(4 * FPS, 12 * FPS));
    const inner = await downloaded(app, (await playback(exact.id)).hls_url);
    expect(await frameHashes(inner)).toHaveLength(230);
    expect((await frameHashes(inner)).slice(15, 215)).toEqual(hashes.slice(4 * FPS, 12 * FPS));
    expect(Math.min(...(await similarity(inner, file, 10, 230)))).toBeGreaterThan(30);
  });

  test("of less than a frame is refused, because no frame may begin in it", async () => {
    const less = { start_seconds: 9.13, end_seconds: 9.15, mode: "exact" };
    const refused = await createClip(app, key, parent.id, less);
    expectError(refused, 422, "clip_not_possible");
    expect(refused.body.error).toContain("shorter than a frame, which lasts 0.040 s");
  });

  nightly("of one or two frames can be clipped again, in both modes", async () => {
    const outer = await cut(parent.id, 9.12, 9.2);
    const whole = await clipOf(app, key, outer.id, 0, 0.08);
    const exact = await cut(outer.id, 0.04, 0.08);
    for (const [{ id }, frames] of [[whole, 2] as const, [exact, 1] as const]) {
      const file = await downloaded(app, (await playback(id)).hls_url);
      expect(await frameHashes(file)).toHaveLength(frames);
      expect((await ffprobe(file, "-show_entries", "stream=codec_type")).trim()).toContain("audio");
    }
  });

  nightly("has the profile of its parent's media, whatever becomes of a new encode of it", async () => {
    const film = await filmAsset(app, key, files);
    const profileOf = async (assetId: number) =>
      (await app.as(key).listJobs()).body.find(({ asset_id }: { asset_id: number }) => asset_id === assetId)?.profile;
    const clipped = async () => {
      const { id } = await exactClip(film.id, 1, 3);
      expect(await workOnce(app)).toBe("completed");
      return profileOf(id);
    };
    const before = await profileOf(film.id);
    const encode = { key, body: { encoding_profile: "quality" } };
    expect((await app.call("POST", `/api/v1/assets/${film.id}/reencode`, encode)).body.profile).toBe("quality");
    const { id } = await exactClip(film.id, 1, 3);
    expect(await profileOf(id)).toBe(before);
    const contract = (await next(app)).body;
    const fault = { code: "encode_failed", message: "It failed.", retryable: false };
    expect((await callback(app, contract, "fail", fault)).status).toBe(200);
    expect(await workOnce(app)).toBe("completed");
    expect(await clipped()).toBe(before);
    expect((await app.call("POST", `/api/v1/assets/${film.id}/reencode`, encode)).status).toBe(202);
    const again = (await next(app)).body;
    expect(await clipped()).toBe(before);
    expect((await callback(app, again, "fail", fault)).status).toBe(200);
    const trim = { key, body: { start_seconds: 1, end_seconds: 3, mode: "exact" } };
    expect((await app.call("POST", `/api/v1/assets/${film.id}/trim`, trim)).status).toBe(202);
    expect(await profileOf(film.id)).toBe(before);
    expect(await workOnce(app)).toBe("completed");
  });

  test("of which the job fails is errored, and its job can be retried", async () => {
    const clip = await exactClip(parent.id, 1, 3);
    const { body: contract } = await next(app, undefined, { capabilities: { clips: 1 } });
    expect(contract).toMatchObject({
      source: { url: "", local_path: null },
      clip: { start_seconds: 1, duration_seconds: 2 },
    });
    expect(contract.task).toBeUndefined();
    const refused = await callback(app, contract, "complete", {
      manifest_path: contract.outputs.manifest_path,
      media: { duration_seconds: 2 },
      clip: {
        skipped_seconds: 1,
        segments: [{ before: "180p/", digits: 5, first: 1, last: 9, after: ".m4s" }],
        own: [],
      },
    });
    expectError(refused, 422, "invalid_transcoding_result");
    const fault = { code: "clip_not_possible", message: "No exact clip of this asset is possible.", retryable: false };
    await callback(app, contract, "fail", fault);
    expect(await shown(clip.id)).toMatchObject({ playback_status: "errored", error: { code: "clip_not_possible" } });
    expect((await app.as(key).retryAsset(clip.id)).status).toBe(200);
    expect(await workOnce(app)).toBe("completed");
    expect(await shown(clip.id)).toMatchObject({ playback_status: "ready", error: null, duration_seconds: 2 });
  });
});
