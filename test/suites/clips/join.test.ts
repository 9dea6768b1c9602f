import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parse } from "mpd-parser";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import { clipOf, downloaded, FPS, film, filmAsset, frameHashes, SECONDS } from "#test/support/clips.ts";
import { checkup } from "#test/support/doctor.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { expectRegular, packetTimes } from "#test/support/media/packet-times.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let dataDir: string;
let key: string;
let files: Awaited<ReturnType<typeof film>>;
let first: Awaited<ReturnType<typeof filmAsset>>;
let second: Awaited<ReturnType<typeof filmAsset>>;
let hashes: { first: string[]; second: string[] };

/** 7.36 s, with audio that ends half a second earlier. */
const SHORT = 7.36;
const PACKET = 1024 / 48_000;

beforeAll(async () => {
  dataDir = emptyFolder();
  app = await testApp({ rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60" }, dataDir);
  key = await app.key((await app.tenant()).id);
  files = await film();
  const source = [
    ...picture("320x180", String(FPS), SHORT),
    ...sound(SHORT - 0.45),
    "-vf",
    "negate",
    ...fast,
    "-c:a",
    "aac",
  ];
  first = await filmAsset(app, key, files, { playback_policy: "public", title: "First" });
  second = await filmAsset(app, key, await film(source), { playback_policy: "public" }, SHORT);
  hashes = {
    first: await frameHashes(await downloaded(app, (await playback(first.id)).hls_url)),
    second: await frameHashes(await downloaded(app, (await playback(second.id)).hls_url)),
  };
  return app.close;
});

const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
const shown = async (id: number) => (await app.as(key).getAsset(id)).body;
const text = async (url: string) => (await app.opened.server.fetch(new Request(url))).text();
const join = (asset_ids: unknown[], body: Record<string, unknown> = {}, as = key) =>
  app.as(as).unchecked.joinAssets({ asset_ids, ...body });

async function joined(...ids: number[]) {
  const { status, text, body } = await join(ids);
  if (status !== 201) throw new Error(text);
  expect(await workOnce(app)).toBe("completed");
  return shown(body.id);
}

/** Seconds at which loud audio begins. */
async function beeps(file: string): Promise<number[]> {
  const rate = 48_000;
  const raw = await ffmpeg("-i", file, "-map", "0:a:0", "-ac", "1", "-ar", String(rate), "-f", "s16le", "-");
  const onsets: number[] = [];
  let quietSince = 0;
  for (let at = 0; at + 2 <= raw.length; at += 2) {
    if (Math.abs(raw.readInt16LE(at)) < 1000) continue;
    if (at / 2 - quietSince > rate / 2) onsets.push(at / 2 / rate);
    quietSince = at / 2;
  }
  return onsets;
}

describe("joining assets", () => {
  test("plays all frames of all parts at regular times, with continuous audio, in HLS and DASH", async () => {
    const whole = await joined(first.id, second.id, second.id, first.id);
    const seconds = 2 * SECONDS + 2 * SHORT;
    expect(whole).toMatchObject({ playback_status: "ready", title: "First", width: 320, error: null, source_key: "" });
    expect(whole.duration_seconds).toBeCloseTo(seconds, 2);
    const { hls_url, dash_url, thumbnail_url } = await playback(whole.id);
    const file = await downloaded(app, hls_url);
    expect(await frameHashes(file)).toEqual([...hashes.first, ...hashes.second, ...hashes.second, ...hashes.first]);
    const frames = await packetTimes(file, "v");
    expect(frames).toHaveLength(Math.round(seconds * FPS));
    expectRegular(frames, 1 / FPS);
    const packets = await packetTimes(file, "a");
    expectRegular(packets, PACKET);
    expect(Math.abs(packets.length * PACKET - seconds)).toBeLessThan(3 * PACKET);

    const manifest = parse(await text(dash_url), { manifestUri: dash_url });
    expect(manifest.duration).toBeCloseTo(seconds, 1);
    const [playlist] = manifest.playlists;
    expect(playlist?.segments.reduce((sum, one) => sum + one.duration, 0)).toBeCloseTo(seconds, 3);
    for (const { resolvedUri } of playlist?.segments ?? [])
      expect((await app.opened.server.fetch(new Request(resolvedUri))).status, resolvedUri).toBe(200);
    expect((await app.opened.server.fetch(new Request(thumbnail_url))).status).toBe(200);
    const folder = whole.manifest_path.replace(/[^/]*$/, "");
    const stored = (await app.opened.app.objects?.list(folder))?.objects ?? [];
    expect(whole.storage_bytes).toBe(stored.reduce((sum, { bytes }) => sum + bytes, 0));
    expectError(await app.as(key).getDownload(whole.id), 410, "source_deleted");
  });

  test("is done by a job, which only workers get that support it, with the usual events", async () => {
    await app.newEvents();
    const { status, body } = await join([first.id, second.id], { title: "Both" });
    expect(status).toBe(201);
    expect(body).toMatchObject({ playback_status: "processing", title: "Both", progress: 0 });
    expect((await next(app)).status).toBe(204);
    expect((await next(app, undefined, { capabilities: { tasks: 1, clips: 1 } })).status).toBe(204);
    expect(await workOnce(app)).toBe("completed");
    expect((await app.newEvents()).map(({ type }) => type)).toEqual([
      ...["video.job.queued", "video.job.started", "video.asset.ready"],
    ]);
  });

  nightly("takes clips, and what is joined can be clipped and joined again after its parts are deleted", async () => {
    const part = await filmAsset(app, key, files, { playback_policy: "public" });
    const clip = await clipOf(app, key, part.id, 4, 12);
    const whole = await joined(clip.id, clip.id);
    for (const { id } of [clip, part]) expect((await app.as(key).deleteAsset(id)).status).toBe(204);
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    const expected = hashes.first.slice(4 * FPS, 12 * FPS);
    const file = await downloaded(app, (await playback(whole.id)).hls_url);
    expect(await frameHashes(file)).toEqual([...expected, ...expected]);
    expectRegular(await packetTimes(file, "v"), 1 / FPS);
    expectRegular(await packetTimes(file, "a"), PACKET);
    const cut = await clipOf(app, key, whole.id, 4, 12);
    const again = await joined(cut.id, whole.id);
    const trim = { start_seconds: 1, end_seconds: 11, mode: "exact" };
    expect((await app.as(key).trimAsset(whole.id, trim)).status).toBe(202);
    expect(await workOnce(app)).toBe("completed");
    const trimmed = await frameHashes(await downloaded(app, (await playback(whole.id)).hls_url));
    expect(trimmed).toHaveLength(10 * FPS);
    const frames = await frameHashes(await downloaded(app, (await playback(again.id)).hls_url));
    expect(frames).toEqual([...expected.slice(4 * FPS), ...expected.slice(0, 4 * FPS), ...expected, ...expected]);
  });

  nightly("on the disk of the server writes the same media as over HTTP", async () => {
    const bodies = [await join([first.id, second.id]), await join([first.id, second.id])].map(({ body }) => body);
    expect(await workOnce(app)).toBe("completed");
    const local_proof = readFileSync(resolve(dataDir, "local-proof"), "utf8").trim();
    const { body: contract } = await next(app, undefined, { capabilities: { joins: 1, local_proof } });
    expect(contract.join.parts[1].local_path).toBe(resolve(dataDir, "objects", second.prefix.slice(0, -1)));
    await callback(app, contract, "release", {});
    expect(await workOnce(app, { sharedDisk: { dataDir } })).toBe("completed");
    const stored = await Promise.all(
      bodies.map(async ({ id }) => {
        const folder = (await shown(id)).manifest_path.replace(/[^/]*$/, "");
        const { objects } = (await app.opened.app.objects?.list(folder)) ?? { objects: [] };
        return objects.map(({ key, bytes }) => [key.slice(folder.length), bytes]);
      }),
    );
    expect(stored[1]).toEqual(stored[0]);
  });

  nightly("keeps audio in sync at the last of many joins", async () => {
    // A beep at second 2 of each part, whose length is no multiple of a packet.
    const seconds = 3.08;
    const beep = 2;
    const count = 20;
    const tone = `sine=f=1000:d=${seconds}:r=48000,volume=enable='not(between(t,${beep},${beep + 0.2}))':volume=0`;
    const source = [...picture("320x180", String(FPS), seconds), "-f", "lavfi", "-i", tone, ...fast, "-c:a", "aac"];
    const part = await filmAsset(app, key, await film(source), { playback_policy: "public" }, seconds);
    const whole = await joined(...Array<number>(count).fill(part.id));
    const file = await downloaded(app, (await playback(whole.id)).hls_url);
    expect(await frameHashes(file)).toHaveLength(Math.round(seconds * FPS) * count);
    const onsets = await beeps(file);
    expect(onsets).toHaveLength(count);
    const [offset] = await beeps(await downloaded(app, (await playback(part.id)).hls_url));
    for (const [index, onset] of onsets.entries())
      expect(Math.abs(onset - index * seconds - (offset as number)), `part ${index}`).toBeLessThan(PACKET / 2 + 0.001);
  });

  test("moves the subtitles and tracks of each part", async () => {
    const part = await filmAsset(app, key, files, { playback_policy: "public" });
    await subtitled(app, key, part.id, {}, "WEBVTT\n\n00:04.000 --> 00:09.500\nWords\n");
    const chapters = { kind: "chapter", name: "chapters", cues: [{ start_ms: 1000, payload: { title: "One" } }] };
    expect((await app.as(key).setTrack(part.id, chapters)).status).toBe(201);
    const whole = await joined(second.id, part.id, part.id);
    await checkup(app, { fix: true });
    const { subtitles } = await playback(whole.id);
    const vtt = await text(subtitles[0].url);
    expect(vtt).toContain("00:00:11.360 --> 00:00:16.860");
    expect(vtt).toContain("00:00:29.360 --> 00:00:34.860");
    expect(vtt.match(/WEBVTT/g)).toHaveLength(1);
    const { body: tracks } = await app.as(key).listTracks(whole.id);
    expect(tracks[0].cues).toMatchObject([
      { start_ms: 8360, end_ms: 25_360 },
      { start_ms: 26_360, end_ms: 43_360 },
    ]);
    const texts = async () =>
      ((await app.opened.app.objects?.list("tenants/"))?.objects ?? []).filter(({ key }) =>
        /delivered.*subtitles/.test(key),
      );
    expect(await texts()).toHaveLength(1);
    expect((await app.as(key).deleteAsset(whole.id)).status).toBe(204);
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    expect(await texts()).toEqual([]);
  });

  test("refuses parts that differ, are not ready, unknown, or another tenant's", async () => {
    const small = await film([...picture("320x180", "30", 4), ...sound(4), ...fast, "-c:a", "aac"]);
    const other = await filmAsset(app, key, small, { playback_policy: "public" });
    const differ = await join([first.id, other.id]);
    expectError(differ, 422, "encodings_differ");
    expect(differ.body.error).toContain(`Asset ${first.id} has in 180p the codec`);
    const silent = await film([...picture("320x180", String(FPS), 4), ...fast]);
    const mute = await filmAsset(app, key, silent, { playback_policy: "public" });
    const tracks = await join([first.id, mute.id]);
    expectError(tracks, 422, "encodings_differ");
    expect(tracks.body.error).toContain("audio tracks");
    const { body: waiting } = await join([first.id, first.id]);
    expectError(await join([first.id, waiting.id]), 422, "asset_not_ready");
    expect(await workOnce(app)).toBe("completed");
    expectError(await join([first.id, 999_999]), 404, "not_found");
    const stranger = await app.key((await app.tenant()).id);
    expectError(await join([first.id, first.id], {}, stranger), 404, "not_found");
    expectError(await join([first.id]), 422, "validation_failed");
    expectError(await join(Array(51).fill(first.id)), 422, "validation_failed");
  });

  test("fails with a clear message when a part is deleted before its job", async () => {
    const part = await filmAsset(app, key, files, { playback_policy: "public" });
    const { body } = await join([first.id, part.id]);
    expect((await app.as(key).deleteAsset(part.id)).status).toBe(204);
    app.advance(3_600_000);
    await app.runTask("sweep-objects");
    await expect(workOnce(app)).rejects.toThrow(/failed/);
    const failed = await shown(body.id);
    expect(failed).toMatchObject({ playback_status: "errored", error: { code: "join_not_possible" } });
    expect(failed.error.message).toContain(`asset ${part.id} are missing`);
  });
});
