import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { startBrowser } from "#test/support/browser/browser.ts";
import { paths } from "../build/paths.ts";
import { CLOCK } from "./live-clock.ts";

const EVERY_MS = 100;

/** The page: plays with hls.js, and reads the clock in the image. */
const PAGE = `<!doctype html><title>Live</title><video muted></video><script src="/hls.js"></script><script>
const { width, height, bits, block } = ${JSON.stringify(CLOCK)};
const video = document.querySelector("video");
const context = Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true });
let failed = null;
window.play = (url, options) => new Promise((shown) => {
  const hls = new Hls(options);
  hls.on(Hls.Events.ERROR, (_, { fatal, details }) => { if (fatal) failed = details; });
  hls.loadSource(url);
  hls.attachMedia(video);
  const from = performance.now();
  video.requestVideoFrameCallback(() => shown(performance.now() - from));
  void video.play().catch(() => {});
});
function latency() {
  context.drawImage(video, 0, 0, width, height);
  const row = context.getImageData(0, block / 2, width, 1).data;
  let value = 0;
  for (let bit = 0; bit < bits; bit++) value = value * 2 + (row[(bit * block + block / 2) * 4] > 128 ? 1 : 0);
  return (Date.now() % 2 ** bits) - value;
}
window.watch = async (seconds) => {
  const samples = [];
  let stalledMs = 0;
  let at = video.currentTime;
  let now = performance.now();
  for (const end = now + seconds * 1000; performance.now() < end; ) {
    await new Promise((done) => setTimeout(done, ${EVERY_MS}));
    if (failed) throw new Error(failed);
    if (video.currentTime === at) stalledMs += performance.now() - now;
    [at, now] = [video.currentTime, performance.now()];
    samples.push(latency());
  }
  return { samples, stalledMs };
};
</script>`;

export type Watched = { samples: number[]; stalledMs: number };

/** Plays a live stream in Chromium for `seconds`, after `warmUpSeconds`. Milliseconds. */
export async function watchLive(
  url: string,
  options: Record<string, unknown>,
  { seconds, warmUpSeconds }: { seconds: number; warmUpSeconds: number },
): Promise<Watched & { firstFrameMs: number }> {
  const server = createServer((request, response) => {
    if (request.url !== "/hls.js") return response.setHeader("content-type", "text/html").end(PAGE);
    response.setHeader("content-type", "text/javascript");
    return createReadStream(join(paths.root, "node_modules/hls.js/dist/hls.min.js")).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await startBrowser("--autoplay-policy=no-user-gesture-required");
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const ask = (call: string, ...args: unknown[]) =>
      page.evaluate(`${call}(${args.map((arg) => JSON.stringify(arg)).join(",")})`);
    const firstFrameMs = (await ask("play", url, options)) as number;
    await ask("watch", warmUpSeconds);
    return { firstFrameMs, ...((await ask("watch", seconds)) as Watched) };
  } finally {
    await browser.close();
    server.closeAllConnections();
    server.close();
  }
}
