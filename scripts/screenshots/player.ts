import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startBrowser, untilPlayed } from "#test/support/browser/browser.ts";
import { startPlatform, untilReady } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { ffmpeg, keep } from "./keep.ts";

/** `node scripts/screenshots/player.ts` takes the documents' screenshots of the real pages during playback. */

/** Conway's Game of Life: dead cells leave a glow. The same seed gives the same image every time. */
function makeClip(path: string): void {
  const life = "life=s=160x90:seed=7:ratio=0.18:mold=6:r=12:life_color=#ffd166:death_color=#2f6bd7:mold_color=#0b1026";
  const glow = "split[a][b];[b]gblur=sigma=14[c];[a][c]blend=all_mode=screen:all_opacity=0.9";
  const graph = `${life},trim=start=2,setpts=PTS-STARTPTS,fps=30,scale=1280:720:flags=neighbor,format=gbrp,${glow},format=yuv420p`;
  const testAudio = ["-f", "lavfi", "-i", "sine=frequency=220:sample_rate=48000"];
  const encoders = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-c:a", "aac"];
  ffmpeg("-f", "lavfi", "-i", graph, ...testAudio, "-t", "16", ...encoders, path);
}

const CAPTIONS = "WEBVTT\n\n00:00.000 --> 00:16.000\nWhat dies leaves a glow.\n";

const folder = mkdtempSync(join(tmpdir(), "vodbox-screenshot-"));
const platform = await startPlatform();
const browser = await startBrowser();
try {
  const clip = join(folder, "life.mp4");
  makeClip(clip);
  const { asset } = await uploaded(platform, platform.key, {
    bytes: readFileSync(clip),
    playback_policy: "public",
    title: "A quiet afternoon in a cellular garden",
    description: "Conway's Game of Life from a random start. What dies leaves a glow.",
  });
  await untilReady(platform, asset.id);
  const cues = ["A first generation", "Gliders", "Still lives"].map((title, index) => ({
    start_ms: index * 6000,
    payload: { title },
  }));
  await platform.call("POST", `/api/v1/assets/${asset.id}/tracks`, {
    key: platform.key,
    body: { kind: "chapter", name: "chapters", cues },
  });
  await subtitled(platform, platform.key, asset.id, { is_default: "1" }, CAPTIONS);
  const open = async (path: string, colorScheme: "light" | "dark", size = { width: 960, height: 720 }) => {
    const page = await browser.newPage({ viewport: size, colorScheme });
    await page.goto(`${platform.base}${path}`);
    await untilPlayed(page, 5);
    // Over the video, so that its controls are visible.
    await page.mouse.move(480, 300);
    await page.mouse.move(490, 310);
    await page.waitForTimeout(600);
    return page;
  };
  const watch = `/watch/${asset.external_id}?autoplay=1`;
  const embed = `/embed/${asset.external_id}?autoplay=1`;

  await keep(await open(watch, "light"), "watch");
  await keep(await open(watch, "dark"), "watch-dark");
  const small = { width: 720, height: 405 };
  const hovered = await open(embed, "dark", small);
  const line = await hovered.locator("media-time-range").boundingBox();
  if (!line) throw new Error("There is no timeline");
  await hovered.mouse.move(line.x + line.width * 0.6, line.y + line.height / 2);
  await hovered.waitForTimeout(1200);
  await keep(hovered, "player-dark");
  const chosen = await open(embed, "light", small);
  await chosen.locator("media-rendition-menu-button").click();
  await chosen.waitForTimeout(600);
  await keep(chosen, "player-quality");
} finally {
  await browser.close();
  await platform.close();
  rmSync(folder, { recursive: true });
}
