import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { customersPage } from "#test/suites/browser/element.ts";
import { sharedBrowser, untilPlayed, videoIn, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { fast, picture, repeated, sound } from "#test/support/media/sources.ts";

/** Long enough that its end is not encoded when a player seeks there, also on a fast machine. */
const SECONDS = 150;
/** What is played before and after the seek. */
const PLAYED = 6;
const packages = join(import.meta.dirname, "../../../node_modules");

let platform: Platform;
let browser: Browser;
let clip: Buffer;
beforeAll(async () => {
  const folder = newFolder();
  const path = join(folder, "clip.mp4");
  [platform, browser] = await Promise.all([
    startPlatform(),
    sharedBrowser(),
    // Not copied: its keyframes are too far apart.
    repeated(
      path,
      SECONDS / 10,
      [...picture("1280x720", "30", 10), ...fast, "-g", "300"],
      [...sound(SECONDS), "-c:a", "aac"],
    ),
  ]);
  clip = readFileSync(path);
  removeFolder(folder);
});
afterAll(async () => {
  await platform?.close();
});

/** An asset as soon as it is ready. */
async function published() {
  const { key, as } = platform;
  const fields = { bytes: clip, early_playback: true, playback_policy: "public", title: "Instant" };
  const { asset } = await uploaded(platform, key, fields);
  await untilReady(platform, asset.id);
  const status = async () => (await as(key).getAsset(asset.id)).body.encoding_status;
  expect(await status()).toBe("partial");
  const { body } = await as(key).getPlayback(asset.id);
  /** HEAD waits for nothing. */
  const isEncoded = async (rendition: string, seconds: number) => {
    const list = new URL(`${await folderOf(body.hls_url)}${rendition}/`, body.hls_url);
    const name = `${String(Math.floor(seconds / 4) + 1).padStart(5, "0")}.m4s`;
    return (await fetch(new URL(name, list), { method: "HEAD" })).status === 200;
  };
  return { asset, status, isEncoded, ...(body as { hls_url: string; dash_url: string }) };
}
/** The folder of the media that the master playlist lists. */
async function folderOf(master: string): Promise<string> {
  const text = await (await fetch(master)).text();
  return (/^(?!#)(\S+\/)360p\//m.exec(text) ?? [])[1] ?? "";
}

/** Notes what the viewer of a <video> sees: pauses of playback, and frames. */
const OBSERVE = `window.seen = { pauses: [], frames: 0, wasAtEnd: false };
  let since = null;
  const settle = () => { if (since !== null) window.seen.pauses.push({ from: since, to: performance.now(), at: video.currentTime }); since = null; };
  // The first frame, and those of a seek, are waited for; what is counted are pauses in between.
  video.addEventListener("waiting", () => { if (window.seen.frames > 0 && !video.seeking) since = performance.now(); });
  for (const name of ["playing", "seeking", "ended"]) video.addEventListener(name, settle);
  video.addEventListener("ended", () => { window.seen.wasAtEnd = true; });
  const frame = () => { window.seen.frames++; video.requestVideoFrameCallback(frame); };
  video.requestVideoFrameCallback(frame);`;
type Seen = { pauses: { from: number; to: number; at: number }[]; frames: number; wasAtEnd: boolean };
const seenBy = (page: Page) => page.evaluate<Seen>("window.seen");

async function untilFrames(page: Page, least: number): Promise<void> {
  await expect
    .poll(async () => (await seenBy(page)).frames, { timeout: 120_000, interval: 50 })
    .toBeGreaterThanOrEqual(least);
}

const PLAYERS = {
  "hls.js": {
    script: "hls.js/dist/hls.min.js",
    start: (media: Media) => `const hls = new Hls(); hls.loadSource("${media.hls_url}"); hls.attachMedia(video);
      hls.on(Hls.Events.ERROR, (_, { fatal, details }) => fatal && window.failures.push(details));`,
  },
  "dash.js": {
    script: "dashjs/dist/modern/umd/dash.all.min.js",
    start: (
      media: Media,
    ) => `const player = dashjs.MediaPlayer().create(); player.initialize(video, "${media.dash_url}", false);
      player.on("error", ({ error }) => window.failures.push(error.code + " " + error.message));`,
  },
  Shaka: {
    script: "shaka-player/dist/shaka-player.compiled.js",
    start: (media: Media) => `const player = new shaka.Player();
      player.configure({ streaming: { retryParameters: { maxAttempts: 20, baseDelay: 2000, backoffFactor: 1 } } });
      player.addEventListener("error", ({ detail }) => detail.severity === 2 && window.failures.push(detail.code));
      player.attach(video).then(() => player.load("${media.dash_url}")).catch(({ code }) => window.failures.push(code));`,
  },
};
type Media = Awaited<ReturnType<typeof published>>;

test.each(Object.keys(PLAYERS) as (keyof typeof PLAYERS)[])(
  "%s plays a video that is not encoded yet, seeks to its end, and gets there",
  async (name) => {
    const { script, start } = PLAYERS[name];
    const media = await published();
    const { page } = await visit(browser, await customersPage("<video muted></video>"));
    await page.addScriptTag({ content: readFileSync(join(packages, script), "utf8") });
    await page.evaluate(`{ const video = document.querySelector("video"); window.failures = []; ${OBSERVE}
      video.addEventListener("canplay", () => void video.play(), { once: true }); ${start(media)} }`);
    await untilFrames(page, 1);
    await untilPlayed(page, PLAYED);
    expect(await page.evaluate("window.failures")).toEqual([]);
    await seekToEnd(page, media);
    expect(await page.evaluate("window.failures")).toEqual([]);
    await page.close();
    await remove(media);
  },
);

test("<svc-player> plays what is encoded, and a part that is encoded when a viewer seeks there", async () => {
  const media = await published();
  const attributes = `playback-id="${media.asset.external_id}" muted autoplay disable-tracking`;
  const element = `<script src="${platform.base}/svc-player.js"></script><svc-player ${attributes}></svc-player>`;
  const { page } = await visit(browser, await customersPage(element));
  await page.waitForFunction(`document.querySelector("svc-player")?.video`, null, { polling: 50 });
  await page.evaluate(`{ const { video } = document.querySelector("svc-player"); ${OBSERVE} }`);
  await untilFrames(page, 1);
  await untilPlayed(page, PLAYED);
  await seekToEnd(page, media);
  expect(await page.evaluate(`document.querySelector("svc-player").error`)).toBeNull();
  await page.close();
  await remove(media);
});

/** Requests that took this long were for a segment that was not encoded. */
const AWAITED_MS = 1000;
/** A browser that decodes without a graphics card on a busy machine pauses for a moment. */
const MOMENT_MS = 1000;

/** Pauses of playback during which the player did not wait for a segment that was being encoded. */
async function unexplained(page: Page): Promise<unknown[]> {
  const { pauses } = await seenBy(page);
  const requests = await page.evaluate<{ name: string; startTime: number; duration: number }[]>(
    `performance.getEntriesByType("resource").map(({ name, startTime, duration }) => ({ name, startTime, duration }))`,
  );
  const awaited = requests.filter(({ name, duration }) => name.endsWith(".m4s") && duration > AWAITED_MS);
  return pauses.filter(
    ({ from, to }) =>
      to - from > MOMENT_MS &&
      !awaited.some(({ startTime, duration }) => startTime < to && startTime + duration > from),
  );
}

/** Seeks to a part that is not encoded, and plays to the end, while most of the video is not encoded. */
async function seekToEnd(page: Page, media: Media): Promise<void> {
  expect(await unexplained(page)).toEqual([]);
  const target = SECONDS - PLAYED;
  for (const rendition of ["720p", "480p", "360p"]) expect(await media.isEncoded(rendition, target)).toBe(false);
  const { frames } = await seenBy(page);
  await page.evaluate(
    `(document.querySelector("svc-player") ?? document.querySelector("video")).currentTime = ${target}`,
  );
  await untilFrames(page, frames + 2);
  expect((await videoIn(page))?.currentTime).toBeGreaterThanOrEqual(target);
  await expect.poll(async () => (await seenBy(page)).wasAtEnd, { timeout: 120_000 }).toBe(true);
  expect(await unexplained(page)).toEqual([]);
  expect(await media.status()).toBe("partial");
}

const remove = ({ asset }: Media) => platform.as(platform.key).deleteAsset(asset.id);
