import { createPrivateKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt, SignJWT } from "jose";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { App } from "#app.ts";
import { playbackTokens } from "#features/playback/token.ts";
import { amount } from "#test/support/amount.ts";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { type Platform, SIGNING_SECRET, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { ffmpeg } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { ask, customersPage, until } from "./element.ts";
import { type SlowLine, startSlowLine } from "./slow-connection.ts";

const FAST = 8000;
/** The smaller rendition has about 450 kbit/s. */
const SLOW = 300;
const SECONDS = amount(75, 100);

let platform: Platform;
let browser: Browser;
let line: SlowLine;
let signed: any;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  line = await startSlowLine(platform.base, FAST);
  const bytes = await noisyClip();
  signed = (await uploaded(platform, platform.key, { bytes, playback_policy: "signed", filename: "noise.mp4" })).asset;
  await untilReady(platform, signed.id);
});
afterAll(async () => {
  line?.close();
  await platform?.close();
});

/** At the bitrate cap, so that it is copied as the top rendition: only the smaller one must be encoded. */
async function noisyClip(): Promise<Buffer> {
  const folder = newFolder();
  const path = join(folder, "noise.mp4");
  const picture = `testsrc2=size=640x360:rate=12:duration=${SECONDS},noise=alls=60:allf=t,format=yuv420p`;
  const limits = "-c:v libx264 -preset ultrafast -b:v 800k -maxrate 800k -bufsize 400k -g 24 -keyint_min 24".split(" ");
  await ffmpeg("-f", "lavfi", "-i", picture, ...limits, path);
  const bytes = readFileSync(path);
  removeFolder(folder);
  return bytes;
}

const tokenFor = (seconds: number) => {
  const clock = { now: () => Date.now() };
  const tokens = playbackTokens({ secrets: { signing_secret: SIGNING_SECRET }, clock } as unknown as App);
  const bound = { id: signed.id, tenantId: signed.tenant_id, externalId: signed.external_id };
  return tokens.sign(bound, Date.now() + seconds * 1000);
};
/** On another site, with all our requests over the slow connection. */
const withElement = async (attributes: string) =>
  visit(
    browser,
    await customersPage(
      `<script>document.addEventListener("tokenexpiring", ({ detail }) => { window.expiring = detail.expiresAt.getTime() }, true)</script>
       <script src="${line.base}/svc-player.js"></script><svc-player playback-id="${signed.external_id}" muted disable-tracking ${attributes}></svc-player>`,
    ),
  );

test("a token expires during playback: with a new one playback continues, without a reload", async () => {
  const first = await tokenFor(50);
  const expiresMs = Number(JSON.parse(Buffer.from(first.split(".")[1] as string, "base64url").toString()).exp) * 1000;
  const seen = await withElement(`token="${first}"`);
  await until(seen, "return window.expiring");
  expect(await seen.page.evaluate("window.expiring")).toBe(expiresMs);
  await until(seen, "return player.readyState >= 2");
  // Records every displayed frame, and everything that would interrupt playback.
  await ask(
    seen,
    `const { video } = player; window.emitted = []; window.back = 0; window.ahead = 0;
     for (const name of ["emptied", "loadstart", "seeking", "pause", "waiting", "error"])
       player.addEventListener(name, () => window.emitted.push(name));
     let before = null;
     const watch = (now, { mediaTime }) => {
       if (before) {
         window.back = Math.max(window.back, before.mediaTime - mediaTime);
         window.ahead = Math.max(window.ahead, mediaTime - before.mediaTime - (now - before.now) / 1000);
       }
       before = { now, mediaTime };
       video.requestVideoFrameCallback(watch);
     };
     video.requestVideoFrameCallback(watch);
     return player.play()`,
  );
  await until(seen, "return player.currentTime > 1");
  const second = await tokenFor(600);
  const at = await ask<number>(seen, `player.token = "${second}"; return player.currentTime`);
  await expect.poll(() => line.asked.at(-1)?.path, { timeout: 60_000 }).toContain(`/~${second}/`);
  line.refuse(first);
  await until(seen, `return player.currentTime > ${at} + 1`);
  // Beyond what was fetched with the first token.
  await ask(
    seen,
    `window.smooth = { emitted: window.emitted.slice(), back: window.back, ahead: window.ahead }; player.pause()`,
  );
  const { emitted, back, ahead } = await seen.page.evaluate<any>("window.smooth");
  expect(emitted.filter((name: string) => name !== "waiting")).toEqual([]);
  expect(back).toBe(0);
  expect(ahead).toBeLessThan(0.25);
  const before = line.asked.length;
  await ask(seen, "player.currentTime = player.buffered.end(0) + 1; return player.play()");
  const end = await ask<number>(seen, "return player.currentTime");
  await until(seen, `return player.currentTime > ${end} + 1`);
  const after = line.asked.slice(before);
  expect(after.length).toBeGreaterThan(0);
  expect(line.asked.filter(({ status }) => status !== 200)).toEqual([]);
  for (const { path } of after) expect(path).toContain(`/~${second}/`);
  expect(line.asked.filter(({ path }) => path.includes("00001.m4s")).length).toBe(1);
  expect(await ask(seen, "return player.error")).toBeNull();
  expect(seen.faults).toEqual([]);
  // An invalid token is reported, and a valid one resumes at the same position.
  const place = await ask<number>(seen, `player.token = "nonsense"; return player.currentTime`);
  await until(seen, `return player.error?.reason === "playback_token_invalid"`);
  await ask(seen, `player.token = "${await tokenFor(600)}"`);
  await until(seen, `return player.error === null && player.readyState >= 2 && player.currentTime >= ${place} - 0.5`);
  await seen.page.close();
});

nightly("quality follows the connection, down and up again", async () => {
  line.setKilobits(FAST);
  const seen = await withElement(`token="${await tokenFor(600)}" preload="auto"`);
  /** Resolves when a segment of `rendition` is requested. */
  const untilAsked = async (rendition: string) => {
    const before = line.asked.length;
    const later = () => line.asked.slice(before).map(({ path }) => /\/(\d+p)\/\d+\.m4s$/.exec(path)?.[1]);
    await expect.poll(later, { timeout: 90_000, interval: 20 }).toContain(rendition);
  };
  await untilAsked("360p");
  line.setKilobits(SLOW);
  await untilAsked("240p");
  line.setKilobits(FAST);
  await untilAsked("360p");
  await ask(seen, "player.playbackRate = 4; return player.play()");
  await until(seen, "return player.videoHeight === 360 && player.currentTime > 1");
  expect(seen.faults).toEqual([]);
});

/** As a customer's server issues it. */
async function mintedFor(seconds: number) {
  const { as, admin } = platform;
  const body = { tenant_id: signed.tenant_id, algorithm: "EdDSA" };
  const { body: key } = await as({ admin }).createSigningKey(body);
  return new SignJWT({ sub: signed.external_id, aud: "v" })
    .setProtectedHeader({ alg: "EdDSA", kid: key.key_id })
    .setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
    .sign(createPrivateKey(Buffer.from(key.private_key, "base64").toString()));
}

test("the expiry of a token that a customer's server issued is reported, too", async () => {
  const token = await mintedFor(58);
  const attributes = `playback-id="${signed.external_id}" token="${token}" muted disable-tracking`;
  const page = await customersPage(
    `<script src="${platform.base}/svc-player.js"></script><svc-player ${attributes}></svc-player>`,
  );
  const seen = await visit(browser, page);
  await ask(
    seen,
    `window.expiring = null; player.addEventListener("tokenexpiring", ({ detail }) => { window.expiring = detail.expiresAt.getTime() })`,
  );
  // An event that was emitted before a listener was attached is emitted again with another token.
  const next = await mintedFor(57);
  await ask(seen, `player.token = "${next}"`);
  await until(seen, `return window.expiring === ${decodeJwt(next).exp as number} * 1000`);
  await until(seen, "return player.readyState >= 2");
  await ask(seen, "return player.play()");
  await until(seen, "return player.currentTime > 0.5");
  expect(seen.faults).toEqual([]);
});

test("play() that precedes the data of the video plays as soon as it can, also without preloading", async () => {
  const element = `<svc-player playback-id="${signed.external_id}" token="${await tokenFor(600)}" preload="none" muted disable-tracking></svc-player>`;
  const html = `<script src="${line.base}/svc-player.js"></script>${element}
    <script>window.played = document.querySelector("svc-player").play().then(() => "played", String)</script>`;
  const seen = await visit(browser, await customersPage(html));
  await until(seen, "return player.currentTime > 0.1");
  expect(await seen.page.evaluate("window.played")).toBe("played");
  expect(seen.faults).toEqual([]);
});
