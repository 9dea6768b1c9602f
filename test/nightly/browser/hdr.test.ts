import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { faultsOf, signedIn } from "#test/suites/browser/console.ts";
import { sharedBrowser, untilPlayed, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type Code, DISPLAY, LIGHT, patchesSource } from "#test/support/media/hdr-sources.ts";
import { Players, type PlayOptions, renditionsIn } from "#test/support/media/matrix-players.ts";
import { nightly } from "#test/support/nightly.ts";

/** An asset that keeps its HDR10 in HEVC and AV1, in all players, and what is made of it. */
vi.setConfig({ hookTimeout: 400_000 });

const SECONDS = 8;
const NAMES = ["360p", "180p", "360p-hevc", "180p-hevc", "360p-av1", "180p-av1"];
const CODES: Code[] = [
  [200, 512, 512],
  [500, 480, 560],
  [700, 512, 512],
  [420, 560, 480],
];
let platform: Platform;
let browser: Browser;
let players: Players;
let asset: { id: number; external_id: string };
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  players = new Players("");
  const profile = {
    name: "cinema",
    codecs: ["h264", "hevc", "av1"],
    hdr: "keep",
    ladder: [
      { height: 360, max_bitrate: 900_000 },
      { height: 180, max_bitrate: 400_000 },
    ],
  };
  const created = await platform.as({ admin: platform.admin }).createEncodingProfile(profile);
  expect(created.status, created.text).toBe(201);
  expect(created.body.hdr).toBe("keep");
  const options = { seconds: SECONDS, parameters: `master-display=${DISPLAY}:max-cll=${LIGHT}` };
  const path = await patchesSource(emptyFolder(), "source.mp4", "hdr10", CODES, options);
  const fields = { bytes: readFileSync(path), playback_policy: "public", encoding_profile: "cinema" };
  ({ asset } = await uploaded(platform, platform.key, fields));
  await untilReady(platform, asset.id);
});
afterAll(async () => {
  await players?.close();
  await platform?.close();
});

const address = (one: { external_id: string } = asset) => `${platform.base}/media/${one.external_id}`;
const renditionsOf = async (id: number): Promise<[string, string | null][]> => {
  const { body } = await platform.as(platform.key).getAsset(id);
  return body.renditions.map(({ name, hdr }: { name: string; hdr: string | null }) => [name, hdr]);
};
const EXPECTED = NAMES.map((name) => [name, /-(hevc|av1)$/.test(name) ? "hdr10" : null]);

async function playsWithoutErrors(of: { external_id: string }, seconds: number, options: PlayOptions = {}) {
  const urls: string[] = [];
  for (const one of await players.playAt(address(of), { ...options, onRequest: (url) => urls.push(url) })) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
    expect(one.duration, one.player).toBeCloseTo(seconds, 0);
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
  }
  return renditionsIn(urls);
}

test("the asset states the HDR of each rendition", async () => {
  expect(await renditionsOf(asset.id)).toEqual(EXPECTED);
});

test("hls.js, dash.js and Shaka play it", async () => {
  await playsWithoutErrors(asset, SECONDS);
});

test("on a display without HDR hls.js chooses SDR", async () => {
  const page = await browser.newPage();
  expect(await page.evaluate(`matchMedia("(dynamic-range: high)").matches`)).toBe(false);
  await page.close();
  const names = await playsWithoutErrors(asset, SECONDS, { only: ["hls.js"] });
  expect(names.filter((name) => !/^\d+p$/.test(name))).toEqual([]);
});

nightly("they play HDR in AV1 alone, where the browser supports it", async () => {
  const page = await browser.newPage();
  const type = 'video/mp4; codecs="av01.0.00M.10.0.110.09.16.09.0"';
  const isSupported = (await page.evaluate(`MediaSource.isTypeSupported(${JSON.stringify(type)})`)) as boolean;
  await page.close();
  const names = await playsWithoutErrors(asset, SECONDS, { query: `?codecs=${isSupported ? "av1" : "h264"}` });
  expect(names.every((name) => name.endsWith("-av1") === isSupported)).toBe(true);
});

nightly("players that know only H.264 request nothing else", async () => {
  const urls: string[] = [];
  const options = { without: /av01|hvc1|hev1/, onRequest: (url: string) => void urls.push(url) };
  for (const one of await players.playAt(address(), options))
    expect(one, JSON.stringify(one)).toMatchObject({ error: null });
  expect(renditionsIn(urls).filter((name) => !/^\d+p$/.test(name))).toEqual([]);
});

test("the watch page plays it", async () => {
  const seen = await visit(browser, `${platform.base}/watch/${asset.external_id}?autoplay=1`);
  await untilPlayed(seen.page, 2);
  expect(seen.faults).toEqual([]);
});

test("the console shows the HDR of each rendition", async () => {
  const seen = await signedIn(browser, platform.base, platform.admin);
  const { page } = seen;
  await page.goto(`${platform.base}/console/assets/${asset.id}?tab=renditions`);
  const rows = page.getByRole("row", { name: /640 × 360/ });
  await expect.poll(() => rows.count()).toBe(3);
  const texts = await rows.allTextContents();
  expect(texts.map((text) => text.includes("HDR10"))).toEqual([false, true, true]);
  expect(faultsOf(seen)).toEqual([]);
});

test.each(["master.m3u8", "manifest.mpd"])("%s without the other codecs has no HDR", async (manifest) => {
  const of = async (query: string) =>
    (await platform.call("GET", `/media/${asset.external_id}/${manifest}${query}`)).text;
  const hdr = /VIDEO-RANGE=PQ|TransferCharacteristics" value="16"/;
  expect(await of("")).toMatch(hdr);
  expect(await of("?codecs=hevc")).toMatch(hdr);
  expect(await of("?codecs=h264")).not.toMatch(hdr);
});

nightly("joins and instant clips keep it", async () => {
  const { key } = platform;
  const joined = await platform.as(key).joinAssets({ asset_ids: [asset.id, asset.id] });
  expect(joined.status, joined.text).toBe(201);
  await untilReady(platform, joined.body.id);
  expect(await renditionsOf(joined.body.id)).toEqual(EXPECTED);
  const master = (await platform.call("GET", `/media/${joined.body.external_id}/master.m3u8`)).text;
  expect(master.match(/VIDEO-RANGE=PQ/g)).toHaveLength(8);
  await playsWithoutErrors(joined.body, 2 * SECONDS);
  const body = { start_seconds: 4, end_seconds: 8 };
  const clip = await platform.as(key).createClip(asset.id, body);
  expect(clip.status, clip.text).toBe(201);
  expect(await renditionsOf(clip.body.id)).toEqual(EXPECTED);
  await playsWithoutErrors(clip.body, 4);
});

nightly("it becomes SDR with another profile, which cannot be joined with it, and HDR again", async () => {
  const { key, admin } = platform;
  const { body: profile } = await platform.as({ admin }).getEncodingProfile("cinema");
  const { tenant_id: _, created_at: __, updated_at: ___, built_in: ____, ...fields } = profile;
  const other = { ...fields, name: "flat", hdr: "tone_map" };
  const created = await platform.as({ admin }).createEncodingProfile(other);
  expect(created.status, created.text).toBe(201);
  const { body: clip } = await platform.as(key).createClip(asset.id, { start_seconds: 0, end_seconds: 8 });
  for (const [name, hdr] of [
    ["flat", null],
    ["cinema", "hdr10"],
  ] as const) {
    const { body: job } = await platform.as(key).reencodeAsset(asset.id, { encoding_profile: name });
    const statusOf = async () => (await platform.as(key).getJob(job.id)).body.status;
    await expect.poll(statusOf, { timeout: 100_000 }).toBe("completed");
    expect((await renditionsOf(asset.id)).map(([, one]) => one)).toEqual([null, null, ...Array(4).fill(hdr)]);
    const join = await platform.as(key).joinAssets({ asset_ids: [asset.id, clip.id] });
    if (hdr === null) expectError(join, 422, "encodings_differ");
    else expect(join.status, join.text).toBe(201);
  }
});
