import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Frame, Page } from "playwright-core";
import { expect } from "vitest";
import { sharedBrowser, untilVideo, type Visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { KEY, translationService } from "#test/support/translation-services.ts";
import { signedIn } from "./console.ts";

/** What every clip says, as a transcription service answers it. */
const SPEECH = {
  language: "english",
  segments: [{ start: 0.5, end: 2, text: "Good morning", avg_logprob: Math.log(0.9) }],
};

export type AssetPages = {
  platform: Platform;
  browser: Browser;
  /** An encoded clip of 8 s, which each test leaves playable. */
  assetId: number;
  newAsset(title: string): Promise<number>;
  /** The same as an instant clip of the first one, which nothing is encoded for; it has no source of its own. */
  newClip(title: string): Promise<number>;
  /** The page of an asset, in a section; by default for the operator. */
  open(options?: { id?: number; tab?: string; token?: string }): Promise<Visit>;
  /** The body of a response below `/api/v1/assets/`. */
  api(method: string, path: string, body?: unknown): Promise<any>;
  close(): Promise<void>;
};

/** A server that encodes, transcribes and translates, an encoded clip, and a browser. */
export async function startAssetPages(): Promise<AssetPages> {
  const service = await translationService("libretranslate");
  const speech = join(emptyFolder(), "speech.json");
  writeFileSync(speech, JSON.stringify(SPEECH));
  const [platform, browser] = await Promise.all([
    startPlatform({
      VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      VODBOX_TRANSLATE: "libretranslate",
      VODBOX_TRANSLATE_URL: service.url,
      VODBOX_TRANSLATE_KEY: KEY,
      VODBOX_TRANSCRIBE: "command",
      VODBOX_TRANSCRIBE_COMMAND: `cat '${speech}' #`,
    }),
    sharedBrowser(),
  ]);
  const { key } = platform;
  const newAsset = async (title: string) => {
    const { asset } = await uploaded(platform, key, { bytes: platform.clip, title });
    await untilReady(platform, asset.id);
    return asset.id as number;
  };
  const assetId = await newAsset("Holiday film");
  const newClip = async (title: string) => {
    const body = { title, start_seconds: 0, end_seconds: 8, mode: "instant" };
    const made = await platform.as(key).createClip(assetId, body);
    expect(made.status, made.text).toBe(201);
    return made.body.id as number;
  };
  return {
    platform,
    browser,
    assetId,
    newAsset,
    newClip,
    async open({ id = assetId, tab = "overview", token = platform.admin } = {}) {
      const seen = await signedIn(browser, platform.base, token);
      await seen.page.goto(`${platform.base}/console/assets/${id}?tab=${tab}`);
      await seen.page.getByRole("tablist").waitFor();
      return seen;
    },
    api: async (method, path, body) => (await platform.call(method, `/api/v1/assets/${path}`, { key, body })).body,
    async close() {
      await platform.close();
      service.close();
    },
  };
}

export const VTT =
  "WEBVTT\n\nNOTE kept\n\n00:00:00.000 --> 00:00:02.000\nHello\n\n00:00:02.500 --> 00:00:05.000 line:0\nSecond line\nof two\n";

/** As `expect.poll`, with the time that a player needs on a busy machine. */
export const eventually = <T>(read: () => T | Promise<T>) => expect.poll(read, { timeout: 30_000 });

export const tab = (page: Page, name: string) => page.getByRole("tab", { name, exact: true });
export const toast = (page: Page, text: string) => page.locator(".toast", { hasText: text }).waitFor();

/** The page of the player, once a frame can be shown. */
export async function playerOf(page: Page): Promise<Frame> {
  const frame = await (await page.locator("iframe.player").elementHandle())?.contentFrame();
  if (!frame) throw new Error("There is no player.");
  await untilVideo(frame, "readyState", 2);
  return frame;
}

/** What the player shows as subtitles at its position. */
export const shownTexts = (frame: Frame): Promise<string[]> =>
  frame.evaluate(() => {
    const { document } = globalThis as any;
    const tracks = [...document.querySelector("svc-player").video.textTracks];
    return tracks
      .filter(({ mode, kind }: any) => mode === "showing" && kind === "subtitles")
      .flatMap(({ activeCues }: any) => [...(activeCues ?? [])].map(({ text }: any) => text));
  });

export const positionOf = (frame: Frame): Promise<number> =>
  frame.evaluate("document.querySelector('svc-player').video.currentTime");
export const lengthOf = (frame: Frame): Promise<number> =>
  frame.evaluate("document.querySelector('svc-player').video.duration");
export const seek = (frame: Frame, seconds: number) =>
  frame.evaluate(`document.querySelector("svc-player").video.currentTime = ${seconds}`);
