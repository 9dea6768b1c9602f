import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { Players } from "#test/support/media/matrix-players.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { faultsOf, signedIn } from "./console.ts";

let platform: Platform;
let players: Players;

beforeAll(async () => {
  platform = await startPlatform();
  players = new Players("");
});
afterAll(async () => {
  await players?.close();
  await platform?.close();
});

/** An asset whose audio ends `less` seconds before its video. */
async function part(seconds: number, less: number, title = "Film"): Promise<number> {
  const path = join(emptyFolder(), "film.mp4");
  await ffmpeg(...picture("320x180", "25", seconds), ...sound(seconds - less), ...fast, "-c:a", "aac", path);
  const options = { bytes: readFileSync(path), playback_policy: "public", title };
  const { asset } = await uploaded(platform, platform.key, options);
  await untilReady(platform, asset.id);
  return asset.id;
}

// Shorter than what the players only seek to the end of: every join is played.
test("hls.js, dash.js and Shaka play over joins to the end", async () => {
  const one = await part(3.08, 0);
  const two = await part(1.6, 0.3);
  const asset_ids = [one, two, two, one];
  const { status, text, body } = await platform.as(platform.key).joinAssets({ asset_ids });
  expect(status, text).toBe(201);
  await untilReady(platform, body.id);
  const seconds = 2 * (3.08 + 1.6);
  for (const player of await players.playAt(`${platform.base}/media/${body.external_id}`)) {
    expect(player, JSON.stringify(player)).toMatchObject({ error: null, size: "320x180" });
    expect(player.duration, player.player).toBeCloseTo(seconds, 1);
    expect(Math.abs(player.left), player.player).toBeLessThan(0.3);
    expect(player.frames, player.player).toBeGreaterThan(seconds * 12);
    expect(player.soundBytes, player.player).toBeGreaterThan(0);
  }
});

test("in the console selected videos are joined, in an order that can be changed", async () => {
  const first = await part(2, 0, "Sunrise");
  const second = await part(3, 0, "Sunset");
  const browser = await sharedBrowser();
  const seen = await signedIn(browser, platform.base, platform.key);
  const { page } = seen;
  try {
    for (const title of ["Sunrise", "Sunset"]) await page.getByLabel(`Select “${title}”`).check();
    await page.getByRole("button", { name: "Join", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Join 2 videos" });
    await dialog.getByText("Sunset").waitFor();
    expect(await dialog.getByRole("listitem").allTextContents()).toEqual([
      expect.stringContaining("Sunrise"),
      expect.stringContaining("Sunset"),
    ]);
    await dialog.getByRole("button", { name: "Move “Sunset” up" }).click();
    await dialog.getByLabel("Title of the new video").fill("Day");
    const sent = page.waitForRequest((request) => request.url().endsWith("/assets/join"));
    await dialog.getByRole("button", { name: "Join" }).click();
    expect((await sent).postDataJSON()).toEqual({ asset_ids: [second, first], title: "Day" });
    await page.getByRole("heading", { name: "Day" }).waitFor();
    const [, id] = /assets\/(\d+)$/.exec(new URL(page.url()).pathname) ?? [];
    await untilReady(platform, Number(id));
    const { body } = await platform.as(platform.key).getAsset(id);
    expect(body).toMatchObject({ title: "Day", duration_seconds: 5 });
    expect(await faultsOf(seen)).toEqual([]);
  } finally {
  }
});
