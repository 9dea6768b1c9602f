import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, untilPlayed, visit } from "#test/support/browser/browser.ts";
import { descendantsOf, until } from "#test/support/descendants.ts";
import { removeFolder } from "#test/support/folder.ts";
import { type LiveServer, liveServer, newChannel, publish } from "#test/support/live.ts";
import { nightly } from "#test/support/nightly.ts";
import { customersPage } from "./element.ts";

/** Players of DASH on pages of other sites, with ffmpeg as publisher. */

const LIMIT = { timeout: 60_000, polling: 100 };

let server: LiveServer;
let browser: Awaited<ReturnType<typeof sharedBrowser>>;
beforeAll(async () => {
  [server, browser] = await Promise.all([liveServer(), sharedBrowser("--autoplay-policy=no-user-gesture-required")]);
});
afterAll(async () => {
  server?.child.kill("SIGKILL");
  await server?.ended;
  if (server) removeFolder(server.dataDir);
});

const library = (path: string) => readFileSync(join(import.meta.dirname, "../../../node_modules", path), "utf8");

/**
 * Each defines `latency`, in seconds, `heights`, of the renditions that can be chosen where it plays, and `choose`, of one by its
 * height, and calls `ended` at the end.
 */
const PLAYERS = [
  {
    script: "dashjs/dist/modern/umd/dash.all.min.js",
    start: `const player = dashjs.MediaPlayer().create();
      player.on("error", ({ error }) => errors.push(error.code + " " + error.message));
      // It may pause after the last frame, and then the video fires no event.
      player.on("playbackEnded", ended);
      player.initialize(video, url, true);
      window.latency = () => player.getCurrentLiveLatency();
      window.heights = () => player.getRepresentationsByType("video").map(({ height }) => height);
      window.choose = (height) => {
        player.updateSettings({ streaming: { abr: { autoSwitchBitrate: { video: false } } } });
        player.setRepresentationForTypeById("video", height + "p");
      };`,
  },
  {
    script: "shaka-player/dist/shaka-player.compiled.js",
    start: `const player = new shaka.Player();
      player.addEventListener("error", ({ detail }) => errors.push(detail.code + " " + detail.data));
      video.addEventListener("ended", ended);
      player.attach(video).then(() => player.load(url)).then(() => video.play(), ({ code }) => errors.push("" + code));
      window.latency = () => (Date.now() - player.getPlayheadTimeAsDate()) / 1000;
      window.heights = () => player.getVariantTracks().map(({ height }) => height);
      window.choose = (height) => {
        player.configure({ abr: { enabled: false } });
        player.selectVariantTrack(player.getVariantTracks().find((track) => track.height === height));
      };`,
  },
];

async function open(url: string, { script, start }: (typeof PLAYERS)[number]) {
  const seen = await visit(browser, await customersPage("<video muted></video>"));
  await seen.page.addScriptTag({ content: library(script) });
  await seen.page.evaluate(
    `window.errors = []; window.isEnded = false;
     ((video, url, ended) => { ${start} })(document.querySelector("video"), "${url}", () => { window.isEnded = true; });`,
  );
  return seen;
}

test("dash.js and Shaka play a signed stream near the live edge, through a reconnect and to its end", async () => {
  const channel = await newChannel(server, { playback_policy: "signed", record: false });
  const path = `/api/v1/live/channels/${channel.id}`;
  const read = async (of: string) => (await server.call("GET", `${path}${of}`, { key: channel.key })).body;
  const first = publish(server, channel, 100);
  await until("the channel is live", async () => (await read("")).status === "live", 30_000);
  const { dash_url } = await read("/playback");
  const all = await Promise.all(PLAYERS.map((player) => open(dash_url, player)));
  await Promise.all(all.map(({ page }) => untilPlayed(page, 4)));
  for (const { page } of all) {
    const latency = await page.evaluate<number>("latency()");
    expect(latency).toBeGreaterThan(1);
    expect(latency).toBeLessThan(15);
  }
  expect((await read("")).viewers).toBe(1);

  first.child.kill("SIGKILL");
  await first.exit;
  const second = publish(server, channel, 12);
  await second.exit;
  await Promise.all(
    all.map(({ page }) => page.waitForFunction("isEnded", undefined, { timeout: 60_000, polling: 100 })),
  );
  for (const { page, faults, requests } of all) {
    expect(await page.evaluate("errors")).toEqual([]);
    expect(faults).toEqual([]);
    // Seconds of both publishers.
    expect(await page.evaluate("document.querySelector('video').currentTime")).toBeGreaterThan(15);
    const others = requests.filter(({ origin }) => origin !== new URL(page.url()).origin);
    expect(new Set(others.map(({ origin }) => origin))).toEqual(new Set([server.base]));
  }
});

nightly(
  "they change to a rendition while it is encoded, and continue with the publisher's video without it",
  async () => {
    const own = await liveServer({ workers: 1 });
    const channel = await newChannel(own, { encoding_profile: "default", record: false });
    const publishing = publish(own, channel, 300, { size: "640x360" });
    const manifest = `${own.base}/live/stage/manifest.mpd`;
    const text = async () => (await fetch(manifest)).text();
    await until("the channel is live", async () => (await text()).includes("<Period"), 30_000);
    const all = await Promise.all(PLAYERS.map((player) => open(manifest, player)));
    await Promise.all(all.map(({ page }) => untilPlayed(page, 2)));
    const listed = async () => [...(await text()).matchAll(/<Representation id="(\w+)"/g)].map(([, id]) => id);
    await until("the rendition is listed", async () => (await listed()).includes("240p"), 100_000);
    const heights = async (height: number) =>
      Promise.all(
        all.map(({ page }) =>
          page.waitForFunction(`document.querySelector("video").videoHeight === ${height}`, undefined, LIMIT),
        ),
      );
    for (const { page } of all) {
      await page.waitForFunction("heights().includes(240)", undefined, LIMIT);
      await page.evaluate("choose(240)");
    }
    await heights(240);
    const worker = descendantsOf(own.child.pid as number).find(({ command }) => / worker --server /.test(command));
    process.kill(worker?.pid as number, "SIGKILL");
    await heights(360);
    publishing.child.kill("SIGINT");
    await Promise.all(all.map(({ page }) => page.waitForFunction("isEnded", undefined, LIMIT)));
    for (const { page, faults } of all) {
      expect(await page.evaluate("errors")).toEqual([]);
      expect(faults).toEqual([]);
    }
  },
);
