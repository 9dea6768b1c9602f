import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { rows } from "#test/support/amount.ts";
import { playingEarly, requested, rowsOf } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, fast, ffmpeg, ffprobe, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { startServer, stopCleanly, tenantKey } from "#test/support/process.ts";

vi.setConfig({ testTimeout: 400_000 });

const folder = temporaryFolder("vodbox-test-early-short");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const linesOf = async (url: string) => (await (await fetch(url)).text()).split("\n").filter((line) => line !== "");
const urisOf = async (url: string) =>
  (await linesOf(url)).filter((line) => !line.startsWith("#")).map((uri) => new URL(uri, url).href);
/** The playlists of a master playlist: of video renditions, and of audio. */
const playlistsOf = async (url: string) => [
  ...(await urisOf(url)),
  ...[...(await linesOf(url)).join("\n").matchAll(/#EXT-X-MEDIA:.*URI="([^"]+)"/g)].map(
    ([, uri]) => new URL(uri as string, url).href,
  ),
];
const namesOf = (playlists: readonly string[]) => playlists.map((url) => url.split("/").at(-2) as string).sort();

/** A source that is copied. */
const FITTING = ["-c:v", "libx264", "-preset", "superfast", "-crf", "32", "-pix_fmt", "yuv420p", "-g", "50"];

const VIDEOS: [string, number, string[], number][] = [
  ["a copied rendition", 10, [...picture("640x360", "25", 10), ...sound(10), ...FITTING], 2],
  ["three whole segments, with larger renditions", 13, [...picture("1280x720", "25", 13), ...sound(13), ...fast], 3],
  ["two whole segments, of which all renditions are low", 9.2, [...picture("640x360", "25", 9.2), ...fast], 2],
];

test.each(rows(VIDEOS, 1))(
  "a short video is ready with all renditions, and each listed segment can be fetched: %s",
  async (name, seconds, source, count) => {
    const clip = join(folder, `${name.replace(/\W/g, "")}.mp4`);
    await ffmpeg(...source, "-c:a", "aac", "-movflags", "+faststart", clip);
    const { dataDir, server, key, asset, job, state, playback } = await playingEarly(clip);
    const playlists = await playlistsOf(playback.hls_url);
    const segments = (await Promise.all(playlists.map(urisOf))).flat();
    // In the order of a viewer who jumps around, until the last one.
    const sizes = await Promise.all(segments.toReversed().map(requested));
    expect(Math.min(...sizes)).toBeGreaterThan(300);

    await until("it is complete", async () => (await state()).encoding_status === "complete", 120_000);
    const { body: complete } = await server.as(key).getPlayback(asset.id);
    const last = await playlistsOf(complete.hls_url);
    expect(namesOf(playlists)).toEqual(namesOf(last));
    expect(namesOf(last).filter((one) => one !== "audio")).toHaveLength(count);
    // What was listed is what there is.
    const pathsOf = (urls: readonly string[]) => urls.map((url) => url.split("/").slice(-2).join("/")).sort();
    expect(pathsOf((await Promise.all(last.map(urisOf))).flat())).toEqual(pathsOf(segments));
    for (const url of last) {
      expect(await complaints("-i", url, "-f", "null", "-"), url).toBe("");
      const packets = await ffprobe("-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0", url);
      if (!url.includes("/audio/"))
        expect(packets.split("\n").filter(Boolean), url).toHaveLength(Math.round(seconds * 25));
    }
    const { body } = await server.as(key).getJob(job.id);
    expect(body).toMatchObject({ status: "completed", attempt: 1, uncuttable: null });
    await stopCleanly(server);
    const types = rowsOf(dataDir).events.map(({ type }) => type);
    for (const once of ["video.asset.ready", "video.asset.encoded"])
      expect(types.filter((type) => type === once)).toHaveLength(1);
  },
);

test("one of a single segment is ready when it is complete, with all renditions", async () => {
  const clip = join(folder, "single.mp4");
  await ffmpeg(...picture("640x360", "25", 5), ...sound(5), ...fast, "-c:a", "aac", clip);
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { args: ["--workers", "1"] });
  const key = await tenantKey(server);
  const fields = { early_playback: true, playback_policy: "public" };
  const { asset } = await uploaded(server, key, { bytes: readFileSync(clip), ...fields });
  const state = async () => (await server.as(key).getAsset(asset.id)).body;
  const ready = await until("the asset is ready", async () => {
    const now = await state();
    return now.playback_status === "ready" ? now : null;
  });
  expect(ready).toMatchObject({ encoding_status: "complete" });
  expect(ready.renditions.map((one: { name: string }) => one.name)).toEqual(["360p", "240p", "audio"]);
  await stopCleanly(server);
  expect(rowsOf(dataDir).events.filter(({ type }) => type === "video.asset.ready")).toHaveLength(1);
});
