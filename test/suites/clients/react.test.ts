import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe } from "vitest";
import { rows } from "#test/support/amount.ts";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { bundled, type React, startSite } from "#test/support/client-pages.ts";
import { atServer, type PlayerScene, playerPage, playerScene } from "#test/support/client-player.ts";
import { describeComponent } from "./player-component.ts";

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

/** A page on another origin with the player, rendered there or at a server. */
async function open(react: React, props: Record<string, unknown>, isRendered = false) {
  const { platform, asset, folder } = scene;
  const all = { server: platform.base, playbackId: asset.external_id, ...props };
  const script = await bundled(IN_PAGE, folder, { react });
  const markup = isRendered ? await rendered(react, all) : "";
  const site = await startSite({ "/app.js": script, "/": playerPage(markup, all) });
  const seen = await visit(browser, `${site.origin}/`);
  return { ...seen, warnings: async () => [], close: site.close };
}

const rendered = async (react: React, props: Record<string, unknown>): Promise<string> =>
  atServer(
    await bundled(AT_SERVER, scene.folder, { react, platform: "node" }),
    "program.renderToString(program.app(props));",
    props,
  );

describe.each(rows(VERSIONS, 1))("React %s", (_, react) => {
  describeComponent({ scene: () => scene, open: (props, isRendered) => open(react, props, isRendered) });
});
