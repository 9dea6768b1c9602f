import { runInNewContext } from "node:vm";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { sharedBrowser, untilPlayed, untilVideo, videoIn, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { bundled, type React, startSite } from "#test/support/client-pages.ts";
import { importClient, installedClients } from "#test/support/clients.ts";
import { removeFolder } from "#test/support/folder.ts";

const VERSIONS: [string, React][] = [
  ["18", { react: "react-18", "react-dom": "react-dom-18" }],
  ["19", { react: "react", "react-dom": "react-dom" }],
];
/** A user's program: one player, whose properties the test changes, and the events that it received. */
const APP = `import { createElement, StrictMode, useState } from "react";
import { VodboxPlayer } from "@vodbox/react";
export const events = [];
export const controls = {};
const on = (event) => events.push([event.type, event.detail?.reason ?? null]);
const handlers = { onPlaying: on, onTimeUpdate: on, onError: on, onTokenExpiring: on, onLoadedMetadata: on };
function App({ initial }) {
  const [props, set] = useState(initial);
  controls.set = (more) => set((old) => ({ ...old, ...more }));
  controls.unmount = () => set(null);
  return props && createElement(VodboxPlayer, {
    ...handlers, id: "film", className: "wide", style: { width: "640px" }, nonce: "n1", ...props,
    ref: (element) => { controls.player = element; },
  });
}
export const app = (initial) => createElement(StrictMode, null, createElement(App, { initial }));
`;
const IN_PAGE = `import { createRoot, hydrateRoot } from "react-dom/client";
${APP}
const root = document.getElementById("root");
if (root.hasChildNodes()) hydrateRoot(root, app(props));
else createRoot(root).render(app(props));
`;
const AT_SERVER = `export { renderToString } from "react-dom/server";
${APP}`;

let folder: string;
let platform: Platform;
let browser: Browser;
let library: any;
let asset: any;
let signer: { keyId: string; privateKey: string };

beforeAll(async () => {
  [folder, platform, browser] = await Promise.all([
    installedClients("client", "react"),
    startPlatform(),
    sharedBrowser(),
  ]);
  library = await importClient(folder);
  const vodbox = new library.Vodbox({ baseUrl: platform.base, apiKey: platform.key });
  const file = new File([new Uint8Array(platform.clip)], "clip.mp4", { type: "video/mp4" });
  const { asset_id } = await vodbox.upload(file, { title: "Clip", playback_policy: "signed" });
  asset = await vodbox.waitUntilReady(asset_id);
  const operator = new library.Vodbox({ baseUrl: platform.base, adminToken: platform.admin });
  const made = await operator.createSigningKey({ body: { tenant_id: asset.tenant_id, algorithm: "EdDSA" } });
  signer = { keyId: made.key_id, privateKey: made.private_key };
});
afterAll(async () => {
  await platform?.close();
  removeFolder(folder);
});

const token = (expiresInSeconds = 600): Promise<string> =>
  library.signPlaybackToken({ ...signer, asset: asset.external_id, expiresInSeconds });

/** A page on another origin with the player, rendered there or, with `markup`, at a server. */
async function open(react: React, props: Record<string, unknown>, isRendered = false) {
  const all = { server: platform.base, playbackId: asset.external_id, ...props };
  const script = await bundled(IN_PAGE, folder, { react });
  const site = await startSite({
    "/app.js": script,
    "/": `<!doctype html><html lang="en"><link rel="icon" href="data:,">
<div id="root">${isRendered ? await rendered(react, all) : ""}</div>
<script>const props = ${JSON.stringify(all)};
var dispatched = 0;
addEventListener("playing", () => dispatched++, true);</script><script src="/app.js"></script>`,
  });
  const seen = await visit(browser, `${site.origin}/`);
  return { ...seen, close: site.close };
}

async function rendered(react: React, props: Record<string, unknown>): Promise<string> {
  const script = await bundled(AT_SERVER, folder, { react, platform: "node" });
  const context: any = { require: (await import("node:module")).createRequire(import.meta.url), ...globals, props };
  return runInNewContext(`${script}; program.renderToString(program.app(props));`, context);
}
const globals = {
  console,
  process,
  setTimeout,
  clearTimeout,
  setImmediate,
  queueMicrotask,
  MessageChannel,
  TextEncoder,
  performance,
};

const eventsOf = (page: Page): Promise<[string, string | null][]> =>
  page.evaluate(() => (globalThis as any).program.events);
const set = (page: Page, props: Record<string, unknown> | null) =>
  page.evaluate((more) => {
    const { controls } = (globalThis as any).program;
    return more ? controls.set(more) : controls.unmount();
  }, props);
const attributes = (page: Page) =>
  page.evaluate(() => {
    const player = (globalThis as any).document.querySelector("svc-player");
    return Object.fromEntries(player.getAttributeNames().map((name: string) => [name, player.getAttribute(name)]));
  });

describe.each(rows(VERSIONS, 1))("React %s", (version, react) => {
  test("plays a signed video, reports its events, and follows its properties", async () => {
    const first = await token();
    const { page, faults, close } = await open(react, { token: first, autoplay: true, loop: true, startTime: 1 });
    await untilPlayed(page, 2);
    expect(await videoIn(page)).toMatchObject({ muted: true, paused: false, videoWidth: expect.any(Number) });
    expect(await attributes(page)).toMatchObject({
      "playback-id": asset.external_id,
      token: first,
      autoplay: "",
      loop: "",
      "start-time": "1",
      id: "film",
      class: "wide",
      style: "width: 640px;",
    });
    const { names, playing } = await page.evaluate(() => {
      const { program, dispatched } = globalThis as any;
      return { names: program.events.map(([name]: [string]) => name) as string[], playing: dispatched as number };
    });
    expect(new Set(names)).toEqual(new Set(["loadedmetadata", "playing", "timeupdate"]));
    // Each event once, also under StrictMode. A stall may make a video report "playing" again, never "loadedmetadata".
    expect(names.filter((name) => name === "loadedmetadata")).toHaveLength(1);
    expect(names.filter((name) => name === "playing")).toHaveLength(playing);
    const isElement = await page.evaluate(() => {
      const { controls } = (globalThis as any).program;
      return controls.player === (globalThis as any).document.querySelector("svc-player") && !controls.player.paused;
    });
    expect(isElement).toBe(true);
    await set(page, { token: await token(), loop: false, videoTitle: "Clip" });
    const after = await attributes(page);
    expect([after.loop, after["video-title"], after.token === first]).toEqual([undefined, "Clip", false]);
    await untilVideo(page, "currentTime", 3);
    // Muted by its property, not by an attribute that has no effect.
    await set(page, { muted: true });
    await set(page, { muted: false });
    await expect.poll(async () => (await videoIn(page))?.muted).toBe(false);
    await set(page, null);
    expect(await page.evaluate(() => (globalThis as any).program.controls.player)).toBe(null);
    expect(await page.locator("svc-player").count()).toBe(0);
    expect(faults).toEqual([]);
    close();
  });

  test("reports a token that has expired, and plays with a new one", async () => {
    const { page, close } = await open(react, { token: await expired(), autoplay: true });
    await expect
      .poll(() => eventsOf(page), { timeout: 30_000 })
      .toContainEqual(["error", expect.stringMatching(/^playback_token/)]);
    await set(page, { token: await token() });
    await untilPlayed(page, 1);
    // A channel instead of the asset: here one that does not exist.
    await set(page, { playbackId: undefined, live: "nothing" });
    await expect.poll(() => eventsOf(page)).toContainEqual(["error", "not_found"]);
    expect(Object.keys(await attributes(page))).not.toContain("playback-id");
    close();
  });

  test("is rendered at a server, and continues in the page", async () => {
    const props = { token: await token(), muted: true, preload: "none", lang: "de" };
    const { page, faults, close } = await open(react, props, true);
    await expect
      .poll(() => page.evaluate(() => (globalThis as any).program.controls.player?.localName))
      .toBe("svc-player");
    expect(await page.locator("svc-player").count()).toBe(1);
    expect(await attributes(page)).toMatchObject({
      muted: "",
      preload: "none",
      lang: "de",
      "playback-id": asset.external_id,
    });
    await page.waitForFunction(() => (globalThis as any).customElements.get("svc-player"));
    await page.evaluate(() => (globalThis as any).program.controls.player.play());
    await untilPlayed(page, 1);
    expect((await eventsOf(page)).map(([name]) => name)).toContain("playing");
    expect([version, faults]).toEqual([version, []]);
    close();
  });
});

/** A token that was valid for an instant, beyond the tolerance of the server's clock. */
async function expired(): Promise<string> {
  const real = Date.now;
  try {
    Date.now = () => real() - 60_000;
    return await token(1);
  } finally {
    Date.now = real;
  }
}
