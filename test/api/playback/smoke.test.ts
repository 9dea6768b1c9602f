import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, untilPlayed, videoIn, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";

let platform: Platform;
let browser: Browser;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
});
afterAll(async () => {
  await platform?.close();
});

test("an upload is encoded and plays in Chromium, with audio, from this server alone", async () => {
  const { asset } = await uploaded(platform, platform.key, { bytes: platform.clip, playback_policy: "public" });
  await untilReady(platform, asset.id);
  const { status, page, faults, requests } = await visit(
    browser,
    `${platform.base}/watch/${asset.external_id}?autoplay=1`,
  );
  expect(status).toBe(200);
  await untilPlayed(page, 2);
  const video = await videoIn(page);
  expect(video).toMatchObject({ muted: true, duration: expect.closeTo(8, 0) });
  expect(video?.videoWidth).toBeGreaterThan(0);
  expect(video?.webkitAudioDecodedByteCount).toBeGreaterThan(0);
  const paths = requests.map(({ pathname }) => pathname);
  expect(paths).toEqual(expect.arrayContaining([`/media/${asset.external_id}/master.m3u8`, "/svc-player.js"]));
  expect(faults).toEqual([]);
  expect(new Set(requests.map((url) => url.origin))).toEqual(new Set([platform.base]));
});
