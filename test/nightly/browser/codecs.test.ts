import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { ask } from "#test/suites/browser/element.ts";
import { sharedBrowser, untilPlayed, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { av1Environment } from "#test/support/media/av1.ts";
import { Players, renditionsIn } from "#test/support/media/matrix-players.ts";
import { flashing, words } from "#test/support/media/matrix-sources.ts";
import { ffmpeg, packetsOf, sound } from "#test/support/media/sources.ts";
import { watched } from "#test/support/process.ts";

/** An asset in H.264, HEVC and AV1. Chromium decodes the first and the last. */
vi.setConfig({ hookTimeout: 400_000 });

const SECONDS = 8;
let platform: Platform;
let browser: Browser;
let players: Players;
let asset: { id: number; external_id: string };
let job: { id: number };
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(av1Environment), sharedBrowser()]);
  players = new Players("");
  const { key, clip: bytes } = platform;
  const profile = {
    name: "modern",
    codecs: ["h264", "hevc", "av1"],
    ladder: [
      { height: 360, max_bitrate: 900_000 },
      { height: 240, max_bitrate: 400_000 },
    ],
  };
  const created = await platform.as({ admin: platform.admin }).createEncodingProfile(profile);
  expect(created.status, created.text).toBe(201);
  const fields = { bytes, playback_policy: "public", encoding_profile: "modern" };
  ({ asset, job } = await uploaded(platform, key, fields));
  await untilReady(platform, asset.id);
});
afterAll(async () => {
  await players?.close();
  await platform?.close();
});

const folder = () => `${platform.base}/media/${asset.external_id}`;
const isPrimary = (name: string) => /^(\d+p|audio)$/.test(name);

test("the asset has renditions of all codecs", async () => {
  const { key } = platform;
  const { body } = await platform.as(key).getAsset(asset.id);
  expect(body.renditions.map(({ name, codec }) => [name, codec])).toEqual([
    ...[
      ["360p", "h264"],
      ["240p", "h264"],
    ],
    ...[
      ["360p-hevc", "hevc"],
      ["240p-hevc", "hevc"],
    ],
    ...[
      ["360p-av1", "av1"],
      ["240p-av1", "av1"],
    ],
    ["audio", "aac"],
  ]);
  for (const { bytes, name } of body.renditions) expect(bytes, name).toBeGreaterThan(10_000);
  const { body: shown } = await platform.as(key).getJob(job.id);
  expect(shown).toMatchObject({ status: "completed", uncuttable: "short" });
});

test("hls.js, dash.js and Shaka play AV1 where the browser supports it", async () => {
  const urls: string[] = [];
  const played = await players.playAt(folder(), { onRequest: (url) => urls.push(url) });
  for (const one of played) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
    expect(one.frames, one.player).toBeGreaterThan(SECONDS * 10);
  }
  const names = renditionsIn(urls);
  expect(names.filter((name) => name !== "audio" && !name.endsWith("-av1"))).toEqual([]);
});

test("players that know only H.264 request nothing else", async () => {
  const urls: string[] = [];
  const options = { without: /av01|hvc1|hev1/, onRequest: (url: string) => void urls.push(url) };
  for (const one of await players.playAt(folder(), options)) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
  }
  const names = renditionsIn(urls);
  expect(names.length).toBeGreaterThan(1);
  expect(names.filter((name) => !isPrimary(name))).toEqual([]);
});

test("hls.js, dash.js and Shaka play AV1 that was copied from the source", async () => {
  const source = join(emptyFolder(), "source.mp4");
  const video = words("-c:v libsvtav1 -preset 12 -crf 45 -g 50 -pix_fmt yuv420p -flags +cgop");
  await ffmpeg(...flashing("640x360", "25", SECONDS), ...sound(SECONDS), ...video, "-c:a", "aac", source);
  const fields = { bytes: await readFile(source), playback_policy: "public", encoding_profile: "modern" };
  const { asset: copied } = await uploaded(platform, platform.key, fields);
  await untilReady(platform, copied.id);
  const address = `${platform.base}/media/${copied.external_id}`;
  const { text: master } = await platform.call("GET", `/media/${copied.external_id}/master.m3u8`);
  const own = await packetsOf(`${address}/${/^.*\/360p-av1\/.*$/m.exec(master)?.[0]}`);
  expect(own.length).toBe(SECONDS * 25);
  expect(own).toEqual(await packetsOf(source));
  const urls: string[] = [];
  for (const one of await players.playAt(address, { onRequest: (url) => urls.push(url) })) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
    expect(one.frames, one.player).toBeGreaterThan(SECONDS * 12);
  }
  const names = renditionsIn(urls);
  expect(names).toContain("360p-av1");
  expect(names.filter((name) => name !== "audio" && !name.endsWith("-av1"))).toEqual([]);
});

test("the watch page offers each size once, and keeps to the codec that plays", async () => {
  const seen = await visit(browser, `${platform.base}/watch/${asset.external_id}?autoplay=1`);
  await untilPlayed(seen.page, 1);
  const sizes = await ask(seen, "return [...player.video.videoRenditions].map(({ height }) => height).sort()");
  expect(sizes).toEqual([240, 360]);
  await ask(seen, "player.video.videoRenditions.selectedIndex = 0");
  await untilPlayed(seen.page, 6);
  const names = renditionsIn(seen.requests.map(({ pathname }) => pathname));
  expect(names.filter((name) => name !== "audio" && !name.endsWith("-av1"))).toEqual([]);
  expect(names).toContain("240p-av1");
  expect(seen.faults).toEqual([]);
});

test.each([
  ["master.m3u8", /(?:avc1|hvc1|av01)(?=\.[\w.]+,mp4a)/g],
  ["manifest.mpd", /(?:avc1|hvc1|av01)/g],
])("%s lists only the requested codecs", async (manifest, pattern) => {
  const listed = async (query: string) => {
    const { text, headers } = await platform.call("GET", `/media/${asset.external_id}/${manifest}${query}`);
    return { codecs: [...new Set(text.match(pattern))], etag: headers.get("etag") };
  };
  const all = await listed("");
  const primary = await listed("?codecs=h264");
  const two = await listed("?codecs=av1,h264");
  expect([all.codecs, primary.codecs, two.codecs]).toEqual([["avc1", "hvc1", "av01"], ["avc1"], ["avc1", "av01"]]);
  expect(new Set([all.etag, primary.etag, two.etag]).size).toBe(3);
  const unknown = await platform.call("GET", `/media/${asset.external_id}/${manifest}?codecs=mpeg4`);
  expectError(unknown, 422, "validation_failed");
});

test.each(["master.m3u8", "manifest.mpd"])("ffmpeg plays %s to its end", async (manifest) => {
  const args = ["-nostdin", "-v", "error", "-i", `${folder()}/${manifest}`, "-f", "null", "-"];
  const { code, stderr } = await watched(spawn("ffmpeg", args)).ended;
  expect([code, stderr]).toEqual([0, ""]);
});

test.each(["master.m3u8", "manifest.mpd"])("mpv plays %s to its end", async (manifest) => {
  const unseen = ["--vo=null", "--ao=null", "--untimed", "--ao-null-untimed=yes", "--msg-level=all=info"];
  const args = ["--no-config", "--no-ytdl", "--no-input-terminal", ...unseen, `${folder()}/${manifest}`];
  const env = { PATH: process.env.PATH, HOME: emptyFolder() };
  const { code, stdout, stderr } = await watched(spawn("mpv", args, { env })).ended;
  expect([code, /Exiting\.\.\. \(End of file\)/.test(stdout)], stdout + stderr).toEqual([0, true]);
});

test("a join has all codecs", async () => {
  const { key } = platform;
  const body = { asset_ids: [asset.id, asset.id] };
  const made = await platform.as(key).joinAssets(body);
  expect(made.status, made.text).toBe(201);
  await untilReady(platform, made.body.id);
  const { renditions } = (await platform.as(key).getAsset(made.body.id)).body;
  expect(renditions.map(({ codec, height }: Record<string, unknown>) => [codec, height])).toEqual([
    ...["h264", "hevc", "av1"].flatMap((codec) => [360, 240].map((height) => [codec, height])),
    ["aac", null],
  ]);
  const urls: string[] = [];
  const address = `${platform.base}/media/${made.body.external_id}`;
  for (const one of await players.playAt(address, { onRequest: (url) => urls.push(url) })) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(one.duration, one.player).toBeCloseTo(2 * SECONDS, 0);
  }
  expect(renditionsIn(urls).some((name) => name.endsWith("-av1"))).toBe(true);
});

test.each([
  ["an exact clip", 1.1, 7, "exact"],
  ["an instant clip", 4, 8, "instant"],
])("%s has all codecs", async (_, start_seconds, end_seconds, mode) => {
  const { key } = platform;
  const made = await platform.as(key).createClip(asset.id, { start_seconds, end_seconds, mode });
  expect(made.status, made.text).toBe(201);
  await untilReady(platform, made.body.id);
  const urls: string[] = [];
  const address = `${platform.base}/media/${made.body.external_id}`;
  for (const one of await players.playAt(address, { onRequest: (url) => urls.push(url) })) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(Math.abs(one.duration - (end_seconds - start_seconds)), one.player).toBeLessThan(0.06);
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
    expect(one.frames, one.player).toBeGreaterThan((end_seconds - start_seconds) * 12);
  }
  const names = renditionsIn(urls);
  expect(names.filter((name) => name !== "audio" && !name.endsWith("-av1"))).toEqual([]);
});
