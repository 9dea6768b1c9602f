import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { bundled, startSite } from "#test/support/client-pages.ts";
import { atServer, type PlayerScene, playerPage, playerScene } from "#test/support/client-player.ts";
import { describeComponent } from "./player-component.ts";

/** A user's program: one player, whose properties the test changes, and the events that it received. */
const APP = `import { createApp, createSSRApp, h, shallowReactive, shallowRef } from "vue";
import { VodboxPlayer } from "@vodbox/vue";
export const events = [];
export const controls = {};
export const warnings = [];
const on = (event) => events.push([event.type, event.detail?.reason ?? null]);
const handlers = { onPlaying: on, onTimeUpdate: on, onError: on, onTokenExpiring: on, onLoadedMetadata: on };
export function app(initial) {
  const props = shallowReactive({ ...initial });
  const isShown = shallowRef(true);
  const component = shallowRef(null);
  controls.set = (more) => void Object.assign(props, more);
  controls.unmount = () => { isShown.value = false; };
  Object.defineProperty(controls, "player", { get: () => component.value?.element ?? null });
  const create = initial.isRendered ? createSSRApp : createApp;
  delete props.isRendered;
  const made = create(() => isShown.value
    ? h(VodboxPlayer, { ...handlers, id: "film", class: "wide", style: { width: "640px" }, nonce: "n1", ...props, ref: component })
    : null);
  made.config.warnHandler = (message) => warnings.push(message);
  return made;
}
`;
const IN_PAGE = `${APP}

const root = document.getElementById("root");
const made = app(props);
made.mount(root);
`;
const AT_SERVER = `export { renderToString } from "vue/server-renderer";
${APP}`;

let scene: PlayerScene;
let browser: Browser;
beforeAll(async () => {
  [scene, browser] = await Promise.all([playerScene("vue"), sharedBrowser()]);
});
afterAll(() => scene?.close());

/** A page on another origin with the player, rendered there or at a server. */
async function open(props: Record<string, unknown>, isRendered = false) {
  const { platform, asset, folder } = scene;
  const all = { isRendered, server: platform.base, playbackId: asset.external_id, ...props };
  const script = await bundled(IN_PAGE, folder);
  const markup = isRendered
    ? await atServer(
        await bundled(AT_SERVER, folder, { platform: "node" }),
        "program.renderToString(program.app(props));",
        all,
      )
    : "";
  const site = await startSite({ "/app.js": script, "/": playerPage(markup, all) });
  const seen = await visit(browser, `${site.origin}/`);
  const warnings = () => seen.page.evaluate(() => (globalThis as any).program.warnings as string[]);
  return { ...seen, warnings, markup, close: site.close };
}

describeComponent({ scene: () => scene, open });
