import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { encodingSpec } from "#media/encoding-spec.ts";
import { writeManifests } from "#media/manifests.ts";
import { readWritten } from "#media/package.ts";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { atEnd } from "#test/support/folder.ts";
import { aac, collect, feed, messagesOf, picture, shifted, sound, x264 } from "#test/support/live/cmaf-publisher.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await sharedBrowser("--autoplay-policy=no-user-gesture-required");
});

const HLS = fileURLToPath(new URL("../../../node_modules/hls.js/dist/hls.min.js", import.meta.url));
const PAGE = `<!doctype html><link rel="icon" href="data:,"><video muted></video><script src="/hls.js"></script><script>
  const video = document.querySelector("video");
  const hls = new Hls();
  window.faults = [];
  hls.on(Hls.Events.ERROR, (_, { details }) => faults.push(details));
  hls.loadSource("/master.m3u8");
  hls.attachMedia(video);
  video.playbackRate = 4;
  video.play();
</script>`;

const TYPES: Record<string, string> = {
  m3u8: "application/vnd.apple.mpegurl",
  js: "text/javascript",
  mp4: "video/mp4",
};

/** Serves a page that plays the folder with hls.js. */
async function serve(folder: string): Promise<string> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    if (path === "/") {
      response.setHeader("content-type", "text/html").end(PAGE);
      return;
    }
    response.setHeader("content-type", TYPES[path.split(".").at(-1) ?? ""] ?? "video/iso.segment");
    createReadStream(path === "/hls.js" ? HLS : join(folder, path))
      .on("error", () => response.writeHead(404).end())
      .pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test("a recording with an interruption and missing audio plays to its end without a hole", async () => {
  const messages = await messagesOf(...picture(9), ...sound(9), ...x264(60), ...aac);
  const { packager, folder } = collect();
  feed(
    packager,
    messages.filter(({ sample }) => sample?.kind !== "audio" || sample.timestamp > 2000),
  );
  packager.interrupt();
  packager.resume();
  feed(packager, shifted(messages, 500_000));
  const { video, audio } = await packager.end();
  const written = [await readWritten(folder, video?.name ?? ""), await readWritten(folder, "audio")] as const;
  await writeManifests({
    outDir: folder,
    plan: {
      video: video && { rate: video.rate },
      audio: [{ name: "audio", channels: audio?.channels ?? 0, surroundOf: null, track: { language: null } }],
    },
    spec: encodingSpec,
    videos: written[0] ? [written[0]] : [],
    audios: written[1] ? [written[1]] : [],
    names: { manifest: "master.m3u8", dash: "manifest.mpd" },
    storyboard: null,
  });
  const { page, faults } = await visit(browser, await serve(folder));
  await page.waitForFunction("document.querySelector('video').ended", undefined, { timeout: 30_000 });
  const played: Record<"ranges" | "start" | "end" | "duration" | "frames", number> = await page.evaluate(`(() => {
    const { buffered, duration } = video;
    const frames = video.getVideoPlaybackQuality().totalVideoFrames;
    return { ranges: buffered.length, start: buffered.start(0), end: buffered.end(0), duration, frames };
  })()`);
  expect(await page.evaluate("faults")).toEqual([]);
  expect(faults).toEqual([]);
  expect(played.ranges).toBe(1);
  expect(played.start).toBeLessThan(0.05);
  expect(played.duration).toBeCloseTo(18, 1);
  expect(played.end).toBeCloseTo(18, 0);
  // Some are dropped at four times the speed, and counted.
  expect(played.frames).toBeGreaterThan(400);
});
