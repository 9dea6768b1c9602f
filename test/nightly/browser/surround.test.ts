import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask } from "#test/suites/browser/element.ts";
import { rows } from "#test/support/amount.ts";
import { sharedBrowser, untilPlayed, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { until } from "#test/support/descendants.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { Players, renditionsIn } from "#test/support/media/matrix-players.ts";
import { fast, ffmpeg, ffprobe, picture } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** An asset with stereo and 5.1, in all players, and what is made of it. */

const SECONDS = 14;
let platform: Platform;
let browser: Browser;
let players: Players;
let asset: { id: number; external_id: string };
let job: { id: number };
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  players = new Players("");
  const profile = {
    name: "cinema",
    audio: { channels: 6 },
    ladder: [
      { height: 360, max_bitrate: 900_000 },
      { height: 180, max_bitrate: 400_000 },
    ],
  };
  const { admin } = platform;
  const created = await platform.as({ admin }).unchecked.createEncodingProfile(profile);
  expect(created.status, created.text).toBe(201);
  expect(created.body.audio).toEqual({ bitrate: 128_000, channels: 6, loudness: "keep" });
  const path = join(emptyFolder(), "source.mov");
  const sound = `anoisesrc=d=${SECONDS}:a=0.1:r=48000,pan=5.1(side)|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0`;
  const input = [...picture("640x360", "25", SECONDS), "-f", "lavfi", "-i", sound];
  await ffmpeg(...input, ...fast, "-pix_fmt", "yuv420p", "-c:a", "ac3", path);
  const fields = { bytes: readFileSync(path), playback_policy: "public", encoding_profile: "cinema" };
  ({ asset, job } = await uploaded(platform, platform.key, fields));
  await untilReady(platform, asset.id);
});
afterAll(async () => {
  await players?.close();
  await platform?.close();
});

const address = (one: { external_id: string } = asset) => `${platform.base}/media/${one.external_id}`;
const shown = async (id: number) => (await platform.as(platform.key).getAsset(id)).body;
const names = async (id: number) => (await shown(id)).renditions.map(({ name }: { name: string }) => name);
/** The URL of the playlist of an audio rendition. */
async function playlistOf(one: { external_id: string }, name: string): Promise<URL> {
  const { text } = await platform.call("GET", `/media/${one.external_id}/master.m3u8`);
  const [, uri] = new RegExp(`URI="([^"]*/${name}/[^"]+)"`).exec(text) ?? [];
  if (uri === undefined) throw new Error(`There is no ${name}: ${text}`);
  return new URL(uri, `${address(one)}/`);
}
/** Channels and seconds of both renditions of the audio. */
async function audioOf(one: { external_id: string }) {
  const read = async (name: string) => {
    const url = (await playlistOf(one, name)).href;
    const shown = await ffprobe("-of", "json", "-show_entries", "stream=channels:format=duration", url);
    const { streams, format } = JSON.parse(shown);
    return [streams[0].channels, Number(format.duration)] as [number, number];
  };
  return { audio: await read("audio"), surround: await read("surround") };
}

test("the asset lists both renditions, and counts them", async () => {
  const { renditions, storage_bytes } = await shown(asset.id);
  expect(renditions.map(({ name, codec }) => [name, codec])).toEqual([
    ["360p", "h264"],
    ["180p", "h264"],
    ["audio", "aac"],
    ["surround", "aac"],
  ]);
  const bytesOf = (name: string) => renditions.find((one) => one.name === name)?.bytes ?? 0;
  // 2.5 times the bitrate.
  expect(bytesOf("surround") / bytesOf("audio")).toBeGreaterThan(1.8);
  expect(storage_bytes).toBeGreaterThan(bytesOf("surround") + bytesOf("audio"));
  const { body } = await platform.as(platform.key).getJob(job.id);
  expect(body).toMatchObject({ status: "completed" });
  expect(await audioOf(asset)).toEqual({
    audio: [2, expect.closeTo(SECONDS, 0)],
    surround: [6, expect.closeTo(SECONDS, 0)],
  });
});

/** The renditions of audio that players request, in this order. */
async function audioPlayed(options: Pick<Parameters<Players["playAt"]>[1] & object, "only" | "query">) {
  const urls: string[] = [];
  for (const one of await players.playAt(address(), { ...options, onRequest: (url) => urls.push(url) })) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
    expect(one.soundBytes, one.player).toBeGreaterThan(10_000);
  }
  return renditionsIn(urls).filter((name) => /^(audio|surround)/.test(name));
}

test.each(rows(["shaka", "dash.js"] as const, 1))("%s plays stereo", async (player) => {
  expect(await audioPlayed({ only: [player] })).toEqual(["audio"]);
});

test("hls.js begins with stereo, and plays nothing else when the URL says so", async () => {
  expect((await audioPlayed({ only: ["hls.js"] }))[0]).toBe("audio");
  expect(await audioPlayed({ only: ["hls.js"], query: "?channels=2" })).toEqual(["audio"]);
});

test.each(["master.m3u8", "manifest.mpd"])("%s can be requested without 5.1", async (manifest) => {
  const listed = async (query: string) => {
    const { text, headers } = await platform.call("GET", `/media/${asset.external_id}/${manifest}${query}`);
    return { names: [...new Set(text.match(/\b(audio|surround|180p)(?=["/])/g))].sort(), etag: headers.get("etag") };
  };
  const all = await listed("");
  const stereo = await listed("?channels=2&codecs=h264");
  expect([all.names, stereo.names]).toEqual([
    ["180p", "audio", "surround"],
    ["180p", "audio"],
  ]);
  expect(stereo.etag).not.toBe(all.etag);
  const unknown = await platform.call("GET", `/media/${asset.external_id}/${manifest}?channels=6`);
  expectError(unknown, 422, "validation_failed");
});

nightly("the watch page plays stereo, and offers each size and each track once", async () => {
  const seen = await visit(browser, `${platform.base}/watch/${asset.external_id}?autoplay=1`);
  await untilPlayed(seen.page, 1);
  const sizes = await ask(seen, "return [...player.video.videoRenditions].map(({ height }) => height).sort()");
  expect(sizes).toEqual([180, 360]);
  expect(await ask(seen, "return [...player.video.audioTracks].map(({ label }) => label)")).toEqual(["Audio 1"]);
  await ask(seen, "player.video.videoRenditions.selectedIndex = 0");
  await untilPlayed(seen.page, 6);
  const requested = renditionsIn(seen.requests.map(({ pathname }) => pathname));
  expect(requested).toEqual(expect.arrayContaining(["180p", "audio"]));
  expect(requested).not.toContain("surround");
  expect(seen.faults).toEqual([]);
});

test.each(
  rows(
    [
      ["exact", { start_seconds: 1.2, end_seconds: 9.2 }, 8],
      ["instant", { start_seconds: 4, end_seconds: 8 }, 4],
    ],
    1,
  ),
)("an %s clip has both", async (mode, range, seconds) => {
  const { key } = platform;
  const body = { ...range, mode };
  const made = await platform.as(key).createClip(asset.id, body);
  expect(made.status, made.text).toBe(201);
  await untilReady(platform, made.body.id);
  expect(await names(made.body.id)).toEqual(["360p", "180p", "audio", "surround"]);
  const { audio, surround } = await audioOf(made.body);
  expect([audio[0], surround[0]]).toEqual([2, 6]);
  expect(surround[1]).toBeCloseTo(audio[1] ?? 0, 2);
  for (const one of await players.playAt(address(made.body))) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(Math.abs(one.duration - seconds), one.player).toBeLessThan(0.3);
  }
});

nightly("a join has both, in groups of their own", async () => {
  const { key } = platform;
  const made = await platform.as(key).joinAssets({ asset_ids: [asset.id, asset.id] });
  expect(made.status, made.text).toBe(201);
  await untilReady(platform, made.body.id);
  expect(await names(made.body.id)).toEqual(["360p", "180p", "audio", "surround"]);
  expect(await audioOf(made.body)).toEqual({
    audio: [2, expect.closeTo(2 * SECONDS, 0)],
    surround: [6, expect.closeTo(2 * SECONDS, 0)],
  });
  const media = async (one: { external_id: string }) =>
    [
      ...(await platform.call("GET", `/media/${one.external_id}/master.m3u8`)).text.matchAll(
        /^#EXT-X-MEDIA:.*(?=,URI)/gm,
      ),
    ].map(([line]) => line);
  expect(await media(made.body)).toEqual(await media(asset));
  for (const one of await players.playAt(address(made.body))) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(Math.abs(one.duration - 2 * SECONDS), one.player).toBeLessThan(0.5);
  }
});

nightly("with early playback both are listed before they are encoded", async () => {
  const path = join(emptyFolder(), "long.mov");
  const sound = "anoisesrc=d=60:a=0.1:r=48000,pan=5.1(side)|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0";
  const input = [...picture("640x360", "25", 60), "-f", "lavfi", "-i", sound];
  await ffmpeg(...input, ...fast, "-pix_fmt", "yuv420p", "-c:a", "ac3", path);
  const fields = {
    bytes: readFileSync(path),
    playback_policy: "public",
    encoding_profile: "cinema",
    early_playback: true,
  };
  const { asset: early } = await uploaded(platform, platform.key, fields);
  await untilReady(platform, early.id);
  expect(await names(early.id)).toEqual(["360p", "180p", "audio", "surround"]);
  // The last segment of 5.1, whether it is encoded already or not.
  const playlist = await playlistOf(early, "surround");
  const segments = (await (await fetch(playlist)).text()).split("\n").filter((line) => line.endsWith(".m4s"));
  expect(segments.length).toBeGreaterThanOrEqual(14);
  const url = new URL(segments.at(-1) as string, playlist);
  for (;;) {
    const { status } = await fetch(url);
    if (status === 200) break;
    expect(status).toBe(503);
  }
  await until("the rest", async () => (await shown(early.id)).encoding_status === "complete" || null, 60_000);
  expect(await audioOf(early)).toEqual({ audio: [2, expect.closeTo(60, 0)], surround: [6, expect.closeTo(60, 0)] });
});
