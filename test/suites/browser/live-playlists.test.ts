import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readPartName } from "#live/playlists/names.ts";
import { sharedBrowser, untilPlayed, visit } from "#test/support/browser/browser.ts";
import { newTimeline, publish, serveStream, sourceTracks } from "./served-stream.ts";

const HLS_JS = fileURLToPath(new URL("../../../node_modules/hls.js/dist/hls.min.js", import.meta.url));
const SECONDS = 12;
const INTERRUPTION = { part: 12, ms: 8000 };

const PAGE = `<!doctype html><link rel="icon" href="data:,"><video muted autoplay></video><script src="/hls.js"></script><script>
  window.errors = [];
  window.hls = new Hls();
  hls.on(Hls.Events.ERROR, (_, { fatal, details, reason }) => errors.push({ fatal, details, reason }));
  hls.loadSource("/master.m3u8");
  hls.attachMedia(document.querySelector("video"));
</script>`;

test("hls.js plays a live stream in parts, through an interruption and to its end", async () => {
  const tracks = await sourceTracks(SECONDS);
  const timeline = newTimeline();
  const { url, requests } = await serveStream(timeline, tracks, { "/": PAGE, "/hls.js": readFileSync(HLS_JS) });
  const browser = await sharedBrowser("--autoplay-policy=no-user-gesture-required");
  const published = publish(timeline, tracks, INTERRUPTION);
  const { page } = await visit(browser, url);
  await untilPlayed(page, SECONDS - 1);
  await published;
  await page.waitForFunction(() => (globalThis as any).hls.latestLevelDetails.live === false);
  const errors: { fatal: boolean; details: string }[] = await page.evaluate(() => (globalThis as any).errors);
  // The stall of the interruption is expected.
  expect(errors.filter(({ fatal, details }) => fatal || !details.startsWith("buffer"))).toEqual([]);
  expect(requests.filter((each) => each.includes("_HLS_msn")).length).toBeGreaterThan(SECONDS);
  const parts = requests.filter((each) => readPartName(each.split("/").at(-1) ?? ""));
  expect(parts.length).toBeGreaterThan(SECONDS);
});
