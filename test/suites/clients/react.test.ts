import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { sharedBrowser, untilPlayed, untilVideo, videoIn, visit } from "#test/support/browser/browser.ts";
import { bundled, type React, startSite } from "#test/support/client-pages.ts";
import {
  atServer,
  attributesOf,
  eventsOf,
  type PlayerScene,
  playerPage,
  playerScene,
  setProps,
} from "#test/support/client-player.ts";

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

let scene: PlayerScene;
let browser: Browser;
beforeAll(async () => {
  [scene, browser] = await Promise.all([playerScene("react"), sharedBrowser()]);
});
afterAll(() => scene?.close());

/** A page on another origin with the player, rendered there or, with `markup`, at a server. */
async function open(react: React, props: Record<string, unknown>, isRendered = false) {
  const { platform, asset, folder } = scene;
  const all = { server: platform.base, playbackId: asset.external_id, ...props };
  const script = await bundled(IN_PAGE, folder, { react });
  const markup = isRendered ? await rendered(react, all) : "";
  const site = await startSite({ "/app.js": script, "/": playerPage(markup, all) });
  const seen = await visit(browser, `${site.origin}/`);
  return { ...seen, close: site.close };
}

const rendered = async (react: React, props: Record<string, unknown>): Promise<string> =>
  atServer(
    await bundled(AT_SERVER, scene.folder, { react, platform: "node" }),
    "program.renderToString(program.app(props));",
    props,
  );

describe.each(rows(VERSIONS, 1))("React %s", (version, react) => {
  test("plays a signed video, reports its events, and follows its properties", async () => {
    const first = await scene.token();
    const { page, faults, close } = await open(react, { token: first, autoplay: true, loop: true, startTime: 1 });
    await untilPlayed(page, 2);
    expect(await videoIn(page)).toMatchObject({ muted: true, paused: false, videoWidth: expect.any(Number) });
    expect(await attributesOf(page)).toMatchObject({
      "playback-id": scene.asset.external_id,
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
    await setProps(page, { token: await scene.token(), loop: false, videoTitle: "Clip" });
    const after = await attributesOf(page);
    expect([after.loop, after["video-title"], after.token === first]).toEqual([undefined, "Clip", false]);
    await untilVideo(page, "currentTime", 3);
    // Muted by its property, not by an attribute that has no effect.
    await setProps(page, { muted: true });
    await setProps(page, { muted: false });
    await expect.poll(async () => (await videoIn(page))?.muted).toBe(false);
    await setProps(page, null);
    expect(await page.evaluate(() => (globalThis as any).program.controls.player)).toBe(null);
    expect(await page.locator("svc-player").count()).toBe(0);
    expect(faults).toEqual([]);
    close();
  });

  test("reports a token that has expired, and plays with a new one", async () => {
    const { page, close } = await open(react, { token: await scene.expired(), autoplay: true });
    await expect
      .poll(() => eventsOf(page), { timeout: 30_000 })
      .toContainEqual(["error", expect.stringMatching(/^playback_token/)]);
    await setProps(page, { token: await scene.token() });
    await untilPlayed(page, 1);
    // A channel instead of the asset: here one that does not exist.
    await setProps(page, { playbackId: undefined, live: "nothing" });
    await expect.poll(() => eventsOf(page)).toContainEqual(["error", "not_found"]);
    expect(Object.keys(await attributesOf(page))).not.toContain("playback-id");
    close();
  });

  test("is rendered at a server, and continues in the page", async () => {
    const props = { token: await scene.token(), muted: true, preload: "none", lang: "de" };
    const { page, faults, close } = await open(react, props, true);
    await expect
      .poll(() => page.evaluate(() => (globalThis as any).program.controls.player?.localName))
      .toBe("svc-player");
    expect(await page.locator("svc-player").count()).toBe(1);
    expect(await attributesOf(page)).toMatchObject({
      muted: "",
      preload: "none",
      lang: "de",
      "playback-id": scene.asset.external_id,
    });
    await page.waitForFunction(() => (globalThis as any).customElements.get("svc-player"));
    await page.evaluate(() => (globalThis as any).program.controls.player.play());
    await untilPlayed(page, 1);
    expect((await eventsOf(page)).map(([name]) => name)).toContain("playing");
    expect([version, faults]).toEqual([version, []]);
    close();
  });
});
