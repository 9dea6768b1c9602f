import { readFileSync } from "node:fs";
import { join as pathOf } from "node:path";
import { parse } from "mpd-parser";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { workOnce } from "#test/support/clip-worker.ts";
import { createClip, downloaded, FPS, film, filmAsset, frameHashes, SECONDS } from "#test/support/clips.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { expectRegular, packetTimes } from "#test/support/media/packet-times.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

let app: TestApp;
let key: string;

beforeAll(async () => {
  // One claim of the worker encodes a source.
  app = await testApp({ parallel: "off", rate_limit_uploads: "10000/60", rate_limit_pictures: "10000/60" });
  key = await app.key((await app.tenant()).id);
  return app.close;
});

const PACKET = 1024 / 48_000;
const HOUR = 3600;

const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
const shown = async (id: number) => (await app.as(key).getAsset(id)).body;
const text = async (url: string) => (await app.opened.server.fetch(new Request(url))).text();
const join = (...asset_ids: number[]) => app.as(key).joinAssets({ asset_ids });
const copyOf = async (id: number) => downloaded(app, (await playback(id)).hls_url);

async function joined(...ids: number[]) {
  const { status, text, body } = await join(...ids);
  if (status !== 201) throw new Error(text);
  expect(await workOnce(app)).toBe("completed");
  return shown(body.id);
}

/** An asset that the real worker has made of a source; `args` are those of ffmpeg. */
async function encoded(...args: string[]) {
  const input = pathOf(emptyFolder(), "source.mp4");
  await ffmpeg(...args, input);
  const made = await uploaded(app, key, { bytes: readFileSync(input), playback_policy: "public" });
  expect(await workOnce(app)).toBe("completed");
  return shown(made.asset.id);
}

/** The decoded audio, in mono. */
const samplesOf = async (file: string, rate = 48_000) => {
  const raw = await ffmpeg("-i", file, "-map", "0:a:0", "-ac", "1", "-ar", String(rate), "-f", "s16le", "-");
  return new Int16Array(raw.buffer, raw.byteOffset, raw.length >> 1);
};

/** Copied as the top rendition; its segments begin at its own keyframes. */
const copiable = (filter: string, seconds: number, keyint = 60) => [
  ...picture("640x360", String(FPS), seconds),
  ...sound(seconds),
  ...["-vf", filter, "-c:v", "libx264", "-preset", "veryfast", "-crf", "30", "-pix_fmt", "yuv420p"],
  ...["-x264-params", `keyint=${keyint}:min-keyint=1:scenecut=0`, "-c:a", "aac", "-ar", "48000"],
];

describe("joining assets of audio only", () => {
  test("plays the audio of all parts without a gap, with a thumbnail, in HLS and DASH", async () => {
    const long = 9.3;
    const short = 5.1;
    const first = await encoded(...sound(long), "-c:a", "aac");
    const second = await encoded(...sound(short), "-c:a", "aac");
    expect(first).toMatchObject({ width: null, renditions: [{ name: "audio", width: null }] });
    const whole = await joined(first.id, second.id, first.id);
    const seconds = 2 * long + short;
    expect(whole).toMatchObject({ playback_status: "ready", width: null, error: null });
    expect(Math.abs(whole.duration_seconds - seconds)).toBeLessThan(3 * PACKET);
    const { hls_url, dash_url, thumbnail_url } = await playback(whole.id);
    const file = await downloaded(app, hls_url);
    const packets = await packetTimes(file, "a:0");
    expectRegular(packets, PACKET);
    expect(Math.abs(packets.length * PACKET - seconds)).toBeLessThan(6 * PACKET);
    // The tone is heard at all times, also next to the joins.
    const samples = await samplesOf(file);
    for (let at = 4800; at + 9600 < samples.length; at += 4800)
      expect(Math.max(...samples.subarray(at, at + 4800)), `at ${at / 48_000} s`).toBeGreaterThan(1000);
    const manifest = parse(await text(dash_url), { manifestUri: dash_url });
    expect(manifest.duration).toBeCloseTo(seconds, 0);
    expect((await app.opened.server.fetch(new Request(thumbnail_url))).status).toBe(200);
  });

  test("is refused together with video", async () => {
    const silentPicture = await encoded(...sound(4.5), "-c:a", "aac");
    const video = await filmAsset(app, key, await film(), { playback_policy: "public" });
    const refused = await join(silentPicture.id, video.id);
    expectError(refused, 422, "encodings_differ");
    expect(refused.body.error).toContain("the renditions none");
  });
});

describe("joining assets whose video was copied", () => {
  test("plays all frames of all parts, where the sources have the same parameters", async () => {
    const first = await encoded(...copiable("null", 10.4));
    const second = await encoded(...copiable("negate", 7.6));
    const whole = await joined(first.id, second.id, first.id);
    const parts = await Promise.all([first.id, second.id, first.id].map(async (id) => frameHashes(await copyOf(id))));
    const file = await copyOf(whole.id);
    expect(await frameHashes(file)).toEqual(parts.flat());
    expectRegular(await packetTimes(file, "v:0"), 1 / FPS);
    expectRegular(await packetTimes(file, "a:0"), PACKET);
    // They begin at keyframes of the sources, not every 4 s.
    const { hls_url } = await playback(whole.id);
    const [top] = /^.*360p\/playlist\.m3u8$/m.exec(await text(hls_url)) as RegExpExecArray;
    const durations = (await text(new URL(top, hls_url).href)).match(/(?<=#EXTINF:)[\d.]+/g);
    expect(durations?.map(Number)).toEqual([4.8, 4.8, 0.8, 4.8, 2.8, 4.8, 4.8, 0.8]);
  });

  test("is refused with both init segments named, where they do not", async () => {
    const first = await encoded(...copiable("null", 4.8));
    const other = await encoded(...copiable("null", 4.8).map((one) => (one === "veryfast" ? "ultrafast" : one)));
    const refused = await join(first.id, other.id);
    expectError(refused, 422, "encodings_differ");
    expect(refused.body.error).toMatch(new RegExp(`${first.id}.*${other.id}`));
  });
});

describe("joining exact clips", () => {
  const exact = async (id: number, start_seconds: number, end_seconds: number) => {
    const { status, text, body } = await createClip(app, key, id, { start_seconds, end_seconds, mode: "exact" });
    if (status !== 201) throw new Error(text);
    expect(await workOnce(app)).toBe("completed");
    return shown(body.id);
  };

  nightly("plays exactly their frames, next to their parent and each other", async () => {
    const parent = await filmAsset(app, key, await film(), { playback_policy: "public" });
    const clip = await exact(parent.id, 2.2, 13.48);
    const short = await exact(parent.id, 5.04, 5.6);
    const ids = [clip.id, short.id, parent.id, clip.id];
    const whole = await joined(...ids);
    const parts = await Promise.all(ids.map(async (id) => frameHashes(await copyOf(id))));
    const frames = parts.flat();
    expect(frames).toHaveLength(Math.round((2 * 11.28 + 0.56 + SECONDS) * FPS));
    const file = await copyOf(whole.id);
    expect(await frameHashes(file)).toEqual(frames);
    expectRegular(await packetTimes(file, "v:0"), 1 / FPS);
    expectRegular(await packetTimes(file, "a:0"), PACKET);
    expect(whole.duration_seconds).toBeCloseTo(frames.length / FPS, 2);
  });

  nightly("whose ends have parameters of their own is possible with each other, not with their parent", async () => {
    const parent = await encoded(...copiable("null", 10.4));
    const clip = await exact(parent.id, 1.2, 8.6);
    const frames = await frameHashes(await copyOf(clip.id));
    const whole = await joined(clip.id, clip.id);
    const file = await copyOf(whole.id);
    expect(await frameHashes(file)).toEqual([...frames, ...frames]);
    expectRegular(await packetTimes(file, "v:0"), 1 / FPS);
    expectError(await join(clip.id, parent.id), 422, "encodings_differ");
  });
});

describe("the limits of a join", () => {
  nightly("fifty parts are joined", async () => {
    const seconds = 1.2;
    const source = [...picture("320x180", String(FPS), seconds), ...sound(seconds), ...fast, "-c:a", "aac"];
    const part = await filmAsset(app, key, await film(source), { playback_policy: "public" }, seconds);
    const hashes = await frameHashes(await copyOf(part.id));
    const whole = await joined(...Array<number>(50).fill(part.id));
    const file = await copyOf(whole.id);
    expect(await frameHashes(file)).toEqual(Array(50).fill(hashes).flat());
    expectRegular(await packetTimes(file, "v:0"), 1 / FPS);
    expect(whole.duration_seconds).toBeCloseTo(50 * seconds, 1);
    expectError(await join(...Array<number>(51).fill(part.id)), 422, "validation_failed");
  });

  test("they are at most 24 hours together", async () => {
    const files = await film([...picture("320x180", String(FPS), 1), ...fast]);
    const half = 12 * HOUR;
    const more = 12 * HOUR + 1;
    const first = await filmAsset(app, key, files, { playback_policy: "public" }, half);
    const longer = await filmAsset(app, key, files, { playback_policy: "public" }, more);
    expect((await join(first.id, first.id)).status).toBe(201);
    const refused = await join(first.id, longer.id);
    expectError(refused, 422, "join_not_possible");
    expect(refused.body.error).toContain("24 hours");
  });
});
