import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { Players } from "#test/support/media/matrix-players.ts";
import { nightly } from "#test/support/nightly.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { ask, customersPage, until } from "./element.ts";

const SECONDS = 18;

let platform: Platform;
let browser: Browser;
let players: Players;
let asset: { id: number; external_id: string };
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  players = new Players("");
  ({ asset } = await uploaded(platform, platform.key, { bytes: longFilm(), playback_policy: "public" }));
  await untilReady(platform, asset.id);
});
afterAll(async () => {
  await players?.close();
  await platform?.close();
});

/** Each second has its own brightness. */
function longFilm(): Buffer {
  const folder = newFolder();
  const path = join(folder, "film.mp4");
  const gray = `nullsrc=s=320x180:r=25:d=${SECONDS},geq=lum='16+12*floor(T)':cb=128:cr=128`;
  const inputs = ["-f", "lavfi", "-i", gray, "-f", "lavfi", "-i", `sine=frequency=440:sample_rate=48000:d=${SECONDS}`];
  const encoders = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"];
  execFileSync("ffmpeg", ["-nostdin", "-v", "error", "-y", ...inputs, ...encoders, path]);
  const bytes = readFileSync(path);
  removeFolder(folder);
  return bytes;
}

function withKeyframesEvery(seconds: number): Buffer {
  const folder = newFolder();
  const path = join(folder, "copied.mp4");
  const inputs = ["-f", "lavfi", "-i", "testsrc2=s=640x360:r=25:d=16", "-f", "lavfi", "-i", "sine=d=16"];
  const keys = ["-g", String(seconds * 25), "-keyint_min", String(seconds * 25), "-sc_threshold", "0", "-bf", "0"];
  const encoders = [
    "-c:v",
    "libx264",
    "-profile:v",
    "high",
    "-preset",
    "veryfast",
    "-pix_fmt",
    "yuv420p",
    "-c:a",
    "aac",
  ];
  execFileSync("ffmpeg", ["-nostdin", "-v", "error", "-y", ...inputs, ...encoders, ...keys, path]);
  const bytes = readFileSync(path);
  removeFolder(folder);
  return bytes;
}

async function clip(start_seconds: number, end_seconds: number): Promise<{ id: number; external_id: string }> {
  const made = await platform.as(platform.key).createClip(asset.id, { start_seconds, end_seconds });
  expect(made.status, made.text).toBe(201);
  return made.body;
}

test.each(
  rows(
    [
      ["from the middle", 5, 11.5, 8],
      ["to the end", 13, SECONDS, 6],
      ["of one segment", 8, 12, 4],
    ],
    1,
  ),
)("hls.js, dash.js and Shaka play a clip %s to its end", async (_, start, end, seconds) => {
  const { external_id } = await clip(start, end);
  for (const one of await players.playAt(`${platform.base}/media/${external_id}`)) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null, size: "320x180" });
    expect(one.duration, one.player).toBeCloseTo(seconds, 0);
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
    expect(one.frames, one.player).toBeGreaterThan(seconds * 12);
    expect(one.soundBytes, one.player).toBeGreaterThan(0);
  }
});

nightly("and one of a copied source, whose segments of video and audio begin at different times", async () => {
  const { key, as } = platform;
  const copied = (await uploaded(platform, key, { bytes: withKeyframesEvery(2.6), playback_policy: "public" })).asset;
  await untilReady(platform, copied.id);
  const body = { start_seconds: 6, end_seconds: 10 };
  const clip = (await as(key).createClip(copied.id, body)).body;
  // Keyframes at 0, 2.6, 5.2, 7.8 and 10.4 s; audio is cut at 4, 8 and 12 s.
  expect(clip.duration_seconds).toBeCloseTo(5.2, 1);
  for (const one of await players.playAt(`${platform.base}/media/${clip.external_id}`)) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null, size: "640x360" });
    // The last segment of audio is longer than that of the video.
    expect(one.duration, one.player).toBeGreaterThan(5);
    expect(one.duration, one.player).toBeLessThan(7);
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
    expect(one.soundBytes, one.player).toBeGreaterThan(0);
  }
});

test.each(
  rows(
    [
      ["within a GOP", 5.04, 5.6],
      ["from the middle to the middle of GOPs", 5.2, 11.48],
      ["with short segments at both ends", 3.88, 12.08],
      ["to the end", 13.32, SECONDS],
    ],
    2,
  ),
)("hls.js, dash.js and Shaka play an exact clip %s to its end", async (_, start_seconds, end_seconds) => {
  const body = { start_seconds, end_seconds, mode: "exact" };
  const made = await platform.as(platform.key).createClip(asset.id, body);
  expect(made.status, made.text).toBe(201);
  await untilReady(platform, made.body.id);
  const seconds = end_seconds - start_seconds;
  for (const one of await players.playAt(`${platform.base}/media/${made.body.external_id}`)) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null, size: "320x180" });
    expect(Math.abs(one.duration - seconds), one.player).toBeLessThan(0.06);
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
    expect(one.frames, one.player).toBeGreaterThan(seconds * 12);
    expect(one.soundBytes, one.player).toBeGreaterThan(0);
  }
});

nightly("hls.js, dash.js and Shaka play an exact clip of a copied source to its end", async () => {
  const { key, as } = platform;
  const copied = (await uploaded(platform, key, { bytes: withKeyframesEvery(2.6), playback_policy: "public" })).asset;
  await untilReady(platform, copied.id);
  const body = { start_seconds: 6.4, end_seconds: 14.2, mode: "exact" };
  const clip = (await as(key).createClip(copied.id, body)).body;
  await untilReady(platform, clip.id);
  for (const one of await players.playAt(`${platform.base}/media/${clip.external_id}`)) {
    expect(one, JSON.stringify(one)).toMatchObject({ error: null, size: "640x360" });
    expect(Math.abs(one.duration - 7.8), one.player).toBeLessThan(0.06);
    expect(Math.abs(one.left), one.player).toBeLessThan(0.3);
    expect(one.frames, one.player).toBeGreaterThan(90);
    expect(one.soundBytes, one.player).toBeGreaterThan(0);
  }
});

test("the player shows the clip's own frames and subtitles, from 0 on", async () => {
  const cue = (from: number, to: number, text: string) => `00:${from}.000 --> 00:${to}.000\n${text}\n\n`;
  const cues = [cue(10, 11, "at two seconds"), cue(13, 15, "at five seconds")];
  await subtitled(platform, platform.key, asset.id, { language: "en" }, `WEBVTT\n\n${cues.join("")}`);
  const { id } = await clip(8, 16);
  const element = `<script src="${platform.base}/svc-player.js"></script><svc-player playback-id="${id}" muted preload="auto" start-time="5.5"></svc-player>`;
  const seen = await visit(browser, await customersPage(element));
  await until(seen, "return player.readyState >= 2");
  expect(await ask(seen, "return Math.round(player.duration)")).toBe(8);
  await ask(seen, `for (const track of player.textTracks) if (track.kind === "subtitles") track.mode = "showing"`);
  await until(seen, `return [...player.textTracks].some((track) => track.activeCues?.[0]?.text === "at five seconds")`);
  const brightness = await ask<number>(
    seen,
    `const canvas = document.createElement("canvas"); canvas.width = canvas.height = 1;
     const context = canvas.getContext("2d"); context.drawImage(player.video, 0, 0, 1, 1);
     return context.getImageData(0, 0, 1, 1).data[0];`,
  );
  // The 13th second, in the range of video, is 16 + 12 x 13; on the screen it is stretched to 0 to 255.
  expect(Math.abs(brightness - ((12 * 13) / 219) * 255)).toBeLessThan(8);
  await ask(seen, "return player.play()");
  await until(seen, "return player.ended");
  expect(seen.faults).toEqual([]);
});
