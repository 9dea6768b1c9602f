import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Page, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady, uploadClip } from "#test/support/browser/platform.ts";
import { until } from "#test/support/descendants.ts";

/** Mux's own components, as published, on a page of a customer, against a real server. */

const DOMAIN = "video.example.com";
const SCRIPTS: Record<string, string> = {
  "/mux-player.js": "@mux/mux-player/dist/mux-player.js",
  "/mux-uploader.js": "@mux/mux-uploader/dist/mux-uploader.js",
};

let platform: Platform;
let browser: Browser;
let context: BrowserContext;
let origin: string;
/** A page of another origin, with the packages as published. Its query is its markup. */
const pages = createServer(({ url = "" }, response) => {
  const file = SCRIPTS[url];
  response.setHeader("content-type", file ? "text/javascript" : "text/html");
  const markup = new URL(url, "http://localhost").searchParams.get("markup") ?? "";
  response.end(
    file ? readFileSync(new URL(`../../../node_modules/${file}`, import.meta.url)) : `<!doctype html>${markup}`,
  );
});
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform({ VODBOX_MUX_DOMAIN: DOMAIN }), sharedBrowser()]);
  context = await browser.newContext();
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  origin = `http://localhost:${(pages.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await context?.close();
  pages.closeAllConnections();
  pages.close();
  await platform?.close();
});

/** What a proxy does that terminates TLS and passes `Host`. */
async function proxied(route: Route): Promise<void> {
  const { host, pathname, search } = new URL(route.request().url());
  const headers = { ...route.request().headers(), host };
  const answer = await new Promise<{ status: number; headers: Record<string, string>; body: Buffer }>(
    (resolve, reject) => {
      const sent = request(
        platform.base + pathname + search,
        { method: route.request().method(), headers },
        async (response) => {
          const parts: Buffer[] = [];
          for await (const part of response) parts.push(part as Buffer);
          const entries = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
          resolve({
            status: response.statusCode ?? 0,
            headers: Object.fromEntries(entries),
            body: Buffer.concat(parts),
          });
        },
      );
      sent.on("error", reject).end();
    },
  );
  await route.fulfill(answer);
}

/** A page with this markup, and the addresses of the domain that it requested. */
async function open(script: string, markup: string): Promise<{ page: Page; requested: string[]; faults: string[] }> {
  const page = await context.newPage();
  const requested = [] as string[];
  const faults = [] as string[];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("response", (response) => {
    const { host } = new URL(response.url());
    if (host.endsWith(DOMAIN)) requested.push(`${response.status()} ${host}`);
  });
  await page.route(`https://*.${DOMAIN}/**`, proxied);
  const query = new URLSearchParams({ markup: `<script src="${script}"></script>${markup}` });
  await page.goto(`${origin}/?${query}`);
  return { page, requested, faults };
}

test("mux-player plays a public playback id of a custom domain, with its images", async () => {
  const id = await uploadClip(platform, { playback_policy: "public" });
  await untilReady(platform, id);
  const asset = await platform.as(platform.key).getAsset(id);
  const attributes = `custom-domain="${DOMAIN}" playback-id="${asset.body.external_id}" disable-tracking muted autoplay`;
  const { page, requested, faults } = await open("/mux-player.js", `<mux-player ${attributes}></mux-player>`);
  const player = () =>
    page.evaluate(() => {
      const { currentTime, error, duration } = (globalThis as any).document.querySelector("mux-player");
      return { currentTime, error: error ? String(error.message) : undefined, duration };
    });
  await until("two seconds are played", async () => (await player()).currentTime > 2, 60_000);
  expect(await player()).toMatchObject({ error: undefined, duration: expect.closeTo(8, 0) });
  expect(new Set(requested)).toEqual(new Set([`200 stream.${DOMAIN}`, `200 image.${DOMAIN}`]));
  expect(faults).toEqual([]);
});

test("the file of a static rendition plays in a video element, also from the middle", async () => {
  const { key, as } = platform;
  const id = await uploadClip(platform, { playback_policy: "public" });
  await untilReady(platform, id);
  const made = await as(key).createStaticRendition(id, { name: "highest" });
  expect(made.body.status).toBe("ready");
  const { page } = await open("/mux-player.js", `<video src="${made.body.url}" muted></video>`);
  const seen = await page.evaluate(async () => {
    const video = (globalThis as any).document.querySelector("video");
    const event = (name: string) => new Promise((resolve) => video.addEventListener(name, resolve, { once: true }));
    await video.play();
    const sought = event("seeked");
    video.currentTime = 6;
    await sought;
    await event("ended");
    const { currentTime, duration, error, videoWidth, webkitAudioDecodedByteCount: audio } = video;
    return { currentTime, duration, error, videoWidth, hasAudio: audio > 0 };
  });
  expect(seen).toEqual({
    currentTime: expect.closeTo(8, 0),
    duration: expect.closeTo(8, 0),
    error: null,
    videoWidth: 640,
    hasAudio: true,
  });
});

test("mux-uploader sends a file in chunks to a direct upload", async () => {
  const { key, as, call, base } = platform;
  const authorization = `Basic ${Buffer.from(`vodbox:${key}`).toString("base64")}`;
  const created = await call("POST", "/mux/video/v1/uploads", {
    headers: { authorization },
    body: { cors_origin: origin },
  });
  const { id, url } = created.body.data;
  expect(url.startsWith(base)).toBe(true);
  const markup = `<mux-uploader endpoint="${url}" chunk-size="256"></mux-uploader>`;
  const { page, faults } = await open("/mux-uploader.js", markup);
  const sent = await page.evaluate(
    () =>
      new Promise<string>((resolve) => {
        const { document, File, CustomEvent } = globalThis as any;
        const uploader = document.querySelector("mux-uploader");
        uploader.addEventListener("success", () => resolve("success"));
        uploader.addEventListener("uploaderror", (event: any) => resolve(event.detail.message));
        const detail = new File([new Uint8Array(700 * 1024).fill(7)], "film.mp4", { type: "video/mp4" });
        uploader.dispatchEvent(new CustomEvent("file-ready", { composed: true, bubbles: true, detail }));
      }),
  );
  expect(sent).toBe("success");
  const { body } = await call("GET", `/mux/video/v1/uploads/${id}`, { headers: { authorization } });
  expect(body.data).toMatchObject({ status: "asset_created" });
  const asset = await as(key).getAsset(body.data.asset_id);
  expect(asset.body.source_bytes).toBe(700 * 1024);
  expect(faults).toEqual([]);
});
