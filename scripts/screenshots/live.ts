import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startBrowser, untilPlayed } from "#test/support/browser/browser.ts";
import { startPlatform } from "#test/support/browser/platform.ts";
import { lineOf } from "#test/support/process.ts";
import { FILMS } from "./films.ts";
import { ffmpeg, keep } from "./keep.ts";

/** `node scripts/screenshots/live.ts` takes the documents' screenshots of a stream while it runs: for viewers and operators. */

const MINUTES = 3;

/** 30 s of video, as of an encoder with a keyframe every 2 s. */
function makeFilm(path: string): void {
  const graph = FILMS.find(({ tags }) => tags.series === "automata" && tags.year)?.graph as string;
  const inputs = ["-f", "lavfi", "-i", graph, "-f", "lavfi", "-i", "sine=frequency=220:sample_rate=48000"];
  const video = ["-c:v", "libx264", "-preset", "veryfast", "-b:v", "3M", "-g", "60", "-pix_fmt", "yuv420p"];
  ffmpeg(...inputs, ...video, "-c:a", "aac", "-t", "30", path);
}

/** Publishes the film again and again, in real time. */
function publish(film: string, url: string): ChildProcess {
  const args = ["-nostdin", "-v", "error", "-re", "-stream_loop", "-1", "-i", film, "-c", "copy", "-f", "flv", url];
  return spawn("ffmpeg", args, { stdio: ["ignore", "ignore", "inherit"] });
}

const folder = mkdtempSync(join(tmpdir(), "vodbox-screenshot-"));
const film = join(folder, "film.mp4");
makeFilm(film);
const platform = await startPlatform({ VODBOX_RTMP_PORT: "0" });
const browser = await startBrowser();
const { base, call, key, admin } = platform;
const body = { channel: "main-stage", name: "Main stage", playback_policy: "public" };
const created = await call("POST", "/api/v1/live/channels", { key, body });
const rtmp = (await lineOf(platform, /^live streams to (rtmp:\S+)$/m))[1];
const publisher = publish(film, `${rtmp}/main-stage?key=${created.body.stream_key}`);
try {
  const viewers = [];
  for (const [name, colorScheme] of [
    ["watch-live", "light"],
    ["watch-live-dark", "dark"],
  ] as const) {
    // The player's name is part of what a viewer is counted by.
    const page = await browser.newPage({ viewport: { width: 960, height: 720 }, colorScheme, userAgent: name });
    await page.goto(`${base}/watch/live/main-stage?autoplay=1`);
    await untilPlayed(page, 5);
    viewers.push({ name, page });
  }
  // Until the charts of the console have some minutes.
  await new Promise((resolve) => setTimeout(resolve, MINUTES * 60_000));
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(`${base}/console`);
  await page.getByLabel("Admin token or API key").fill(admin);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "Assets", exact: true }).waitFor();
  await page.goto(`${base}/console/live/${created.body.id}`);
  await page.waitForLoadState("load");
  await page.waitForTimeout(2500);
  await keep(page, "console/live-channel");
  for (const { name, page } of viewers) {
    // Over the video, so that its controls are visible.
    await page.mouse.move(480, 300);
    await page.mouse.move(490, 310);
    await page.waitForTimeout(600);
    await keep(page, name);
  }
} finally {
  publisher.kill();
  await browser.close();
  await platform.close();
  rmSync(folder, { recursive: true });
}
