import { createRequire } from "node:module";
import { runInNewContext } from "node:vm";
import type { Page } from "playwright-core";
import { startPlatform } from "./browser/platform.ts";
import { type ClientPackage, importClient, installedClients } from "./clients.ts";
import { removeFolder } from "./folder.ts";

/** A server with a signed video, and the folder of a user with the client and a component for the player. */
export async function playerScene(component: Exclude<ClientPackage, "client">) {
  const [folder, platform] = await Promise.all([installedClients("client", component), startPlatform()]);
  const library = await importClient(folder);
  const vodbox = new library.Vodbox({ baseUrl: platform.base, apiKey: platform.key });
  const file = new File([new Uint8Array(platform.clip)], "clip.mp4", { type: "video/mp4" });
  const { asset_id } = await vodbox.upload(file, { title: "Clip", playback_policy: "signed" });
  const asset = await vodbox.waitUntilReady(asset_id);
  const operator = new library.Vodbox({ baseUrl: platform.base, adminToken: platform.admin });
  const made = await operator.createSigningKey({ body: { tenant_id: asset.tenant_id, algorithm: "EdDSA" } });
  const signer = { keyId: made.key_id, privateKey: made.private_key };
  const token = (expiresInSeconds = 600): Promise<string> =>
    library.signPlaybackToken({ ...signer, asset: asset.external_id, expiresInSeconds });
  return {
    folder,
    platform,
    asset,
    token,
    /** A token that was valid for an instant, beyond the tolerance of the server's clock. */
    async expired(): Promise<string> {
      const real = Date.now;
      try {
        Date.now = () => real() - 60_000;
        return await token(1);
      } finally {
        Date.now = real;
      }
    },
    async close() {
      await platform.close();
      removeFolder(folder);
    },
  };
}
export type PlayerScene = Awaited<ReturnType<typeof playerScene>>;

/** What `expression` is for a bundled program at a server. */
export async function atServer(script: string, expression: string, props: object): Promise<string> {
  const globals = { console, process, setTimeout, clearTimeout, setImmediate, queueMicrotask };
  const context = { ...globals, Buffer, URL, MessageChannel, TextEncoder, performance, props };
  const result = await runInNewContext(`${script}; ${expression}`, {
    ...context,
    require: createRequire(import.meta.url),
  });
  return result as string;
}

/** A page of a user with the player, which is `markup` before the program runs. */
export const playerPage = (
  markup: string,
  props: object,
): string => `<!doctype html><html lang="en"><link rel="icon" href="data:,">
<div id="root">${markup}</div>
<script>const props = ${JSON.stringify(props)};
var dispatched = 0;
addEventListener("playing", () => dispatched++, true);</script><script src="/app.js"></script>`;

/** The events that the program received. */
export const eventsOf = (page: Page): Promise<[string, string | null][]> =>
  page.evaluate(() => (globalThis as any).program.events);
/** Changes properties of the component, or removes it. */
export const setProps = (page: Page, props: Record<string, unknown> | null) =>
  page.evaluate((more) => {
    const { controls } = (globalThis as any).program;
    return more ? controls.set(more) : controls.unmount();
  }, props);
/** The attributes of the element. */
export const attributesOf = (page: Page) =>
  page.evaluate(() => {
    const player = (globalThis as any).document.querySelector("svc-player");
    return Object.fromEntries(player.getAttributeNames().map((name: string) => [name, player.getAttribute(name)]));
  });
