import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { startBrowser, untilPlayed } from "../test/browser/browser.ts";
import { startPlatform, untilReady } from "../test/browser/platform.ts";
import { uploaded } from "../test/support/flow.ts";
import { paths } from "./build/paths.ts";

/** `node scripts/screenshot.ts`: the README's picture, taken of the real page while it plays. */
const result = join(paths.root, "docs/images/watch.png");
const MOST_BYTES = 300_000;

const ffmpeg = (...args: string[]) => execFileSync("ffmpeg", ["-nostdin", "-v", "error", "-y", ...args]);

/** Conway's Game of Life: what dies leaves a glow. The same seed gives the same picture every time. */
function makeClip(path: string): void {
  const life = "life=s=160x90:seed=7:ratio=0.18:mold=6:r=12:life_color=#ffd166:death_color=#2f6bd7:mold_color=#0b1026";
  const glow = "split[a][b];[b]gblur=sigma=14[c];[a][c]blend=all_mode=screen:all_opacity=0.9";
  const graph = `${life},trim=start=2,setpts=PTS-STARTPTS,fps=30,scale=1280:720:flags=neighbor,format=gbrp,${glow},format=yuv420p`;
  const sound = ["-f", "lavfi", "-i", "sine=frequency=220:sample_rate=48000"];
  const encoders = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "20", "-c:a", "aac"];
  ffmpeg("-f", "lavfi", "-i", graph, ...sound, "-t", "16", ...encoders, path);
}

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
  const page = await browser.newPage({ viewport: { width: 960, height: 720 }, colorScheme: "light" });
  await page.goto(`${platform.base}/watch/${asset.external_id}?autoplay=1`);
  await untilPlayed(page, 5);
  // Over the picture, so that its controls are shown; the clock on them follows in its own time.
  await page.mouse.move(480, 300);
  await untilPlayed(page, 6);
  await page.mouse.move(490, 310);
  const taken = join(folder, "taken.png");
  await page.screenshot({ path: taken });
  mkdirSync(dirname(result), { recursive: true });
  ffmpeg("-i", taken, "-vf", "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=none", "-frames:v", "1", result);
  const { size } = statSync(result);
  if (size > MOST_BYTES) throw new Error(`${result} has ${size} bytes, more than ${MOST_BYTES}`);
  console.log(`${relative(paths.root, result)}: ${Math.round(size / 1000)} kB`);
} finally {
  await browser.close();
  await platform.close();
  rmSync(folder, { recursive: true });
}
