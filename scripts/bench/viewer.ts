import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Page, Request } from "playwright-core";
import { startBrowser } from "#test/support/browser/browser.ts";
import { paths } from "../build/paths.ts";

export type PlayerName = "hls.js" | "dash.js";
const LIBRARIES: Record<string, string> = {
  "/hls.js": "hls.js/dist/hls.min.js",
  "/dash.js": "dashjs/dist/modern/umd/dash.all.min.js",
};

/**
 * The page: one video. `open` and `seek` resolve with milliseconds until the first frame is shown, `watch` with those
 * without progress. Each waits at most a minute.
 */
const PAGE = `<!doctype html><title>Viewer</title><video muted></video>
<script src="/hls.js"></script><script src="/dash.js"></script><script>
const video = document.querySelector("video");
const LIMIT_MS = 60_000;
const within = (promise, what) => Promise.race([
  promise,
  new Promise((_, refuse) => setTimeout(() => refuse(new Error("No " + what + " within a minute")), LIMIT_MS)),
]);
const frameFrom = (seconds) => new Promise((done) => {
  const shown = (_, { mediaTime }) => mediaTime >= seconds ? done() : video.requestVideoFrameCallback(shown);
  video.requestVideoFrameCallback(shown);
});
let failed = null;
const openers = {
  "hls.js"(folder) {
    const hls = new Hls();
    hls.on(Hls.Events.ERROR, (_, { fatal, details }) => { if (fatal) failed = details; });
    hls.loadSource(folder + "/master.m3u8");
    hls.attachMedia(video);
  },
  "dash.js"(folder) {
    const player = dashjs.MediaPlayer().create();
    player.on("error", ({ error }) => { failed = error.message; });
    // As docs/player.md advises.
    player.updateSettings({ streaming: { retryAttempts: { MediaSegment: 20 }, retryIntervals: { MediaSegment: 2000 } } });
    player.initialize(video, folder + "/manifest.mpd", true);
  },
};
async function measured(act, seconds, what) {
  const from = performance.now();
  const shown = frameFrom(seconds);
  act();
  await within(shown, what);
  if (failed) throw new Error(failed);
  return performance.now() - from;
}
window.openWith = (player, folder) => measured(() => { openers[player](folder); void video.play().catch(() => {}); }, 0, "frame");
window.seek = (seconds) => measured(() => { video.currentTime = seconds; void video.play(); }, seconds - 0.1, "frame after a seek");
window.watch = async (seconds) => {
  const until = video.currentTime + seconds;
  let stalled = 0;
  let at = video.currentTime;
  let now = performance.now();
  for (;;) {
    await new Promise((done) => setTimeout(done, 100));
    if (failed) throw new Error(failed);
    if (video.currentTime === at) stalled += performance.now() - now;
    [at, now] = [video.currentTime, performance.now()];
    if (at >= until || video.ended) return stalled;
    if (stalled > LIMIT_MS) throw new Error("Playback has stopped at " + at + " s");
  }
};
</script>`;

/** A browser with one page, in which a library plays from another origin. All results are milliseconds. */
export type Viewer = {
  /** From the call until the first frame is shown. */
  open(player: PlayerName, folder: string): Promise<number>;
  /** Plays for `seconds`, and returns the time without progress. */
  watch(seconds: number): Promise<number>;
  /** From the seek until a frame of that position is shown. */
  seek(seconds: number): Promise<number>;
  close(): Promise<void>;
};

/** Shows what a player waits for: each request with its start, duration and result. */
function printRequests(page: Page): void {
  const starts = new Map<Request, number>();
  const ended = (request: Request, result: string) => {
    const from = starts.get(request) ?? 0;
    const [start, length] = [from, performance.now() - from].map((ms) => (ms / 1000).toFixed(2));
    console.error(`${start} s + ${length} s: ${new URL(request.url()).pathname} ${result}`);
  };
  page.on("request", (request) => starts.set(request, performance.now()));
  page.on("requestfinished", async (request) =>
    ended(request, String((await request.response().catch(() => null))?.status())),
  );
  page.on("requestfailed", (request) => ended(request, request.failure()?.errorText ?? "failed"));
}

export async function startViewer(): Promise<Viewer> {
  const server = createServer((request, response) => {
    const library = LIBRARIES[request.url ?? ""];
    if (!library) return response.setHeader("content-type", "text/html").end(PAGE);
    response.setHeader("content-type", "text/javascript");
    return createReadStream(join(paths.root, "node_modules", library)).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await startBrowser("--autoplay-policy=no-user-gesture-required");
  const page: Page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  if (process.env.VODBOX_BENCH_TRACE) printRequests(page);
  const ask = (call: string, ...args: unknown[]) =>
    page.evaluate(`${call}(${args.map((arg) => JSON.stringify(arg)).join(",")})`) as Promise<number>;
  return {
    open: (player, folder) => ask("openWith", player, folder),
    watch: (seconds) => ask("watch", seconds),
    async seek(seconds) {
      if (process.env.VODBOX_BENCH_TRACE) console.error(`${(performance.now() / 1000).toFixed(2)} s: seek`);
      return await ask("seek", seconds);
    },
    async close() {
      await browser.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
