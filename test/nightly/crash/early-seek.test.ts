import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { requested, rowsOf } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, fast, ffprobe, picture, repeated, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { type RunningServer, startServer, stopCleanly, tenantKey } from "#test/support/process.ts";

vi.setConfig({ testTimeout: 400_000 });

const folder = temporaryFolder("vodbox-test-early");
const clip = join(folder, "clip.mp4");
/** Long enough that it is encoded only in part when the end has been requested. */
const SECONDS = 100;
const FPS = 12;
beforeAll(() => {
  const video = [...picture("1280x720", String(FPS), 10), ...fast, "-g", String(10 * FPS)];
  return repeated(clip, SECONDS / 10, video, [...sound(SECONDS), "-c:a", "aac"]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60", VODBOX_LEASE_SECONDS: "4" };
const args = ["--workers", "1"];

/** The URLs of a playlist's segments. */
async function segmentsOf(playlist: string): Promise<string[]> {
  const text = await (await fetch(playlist)).text();
  return text
    .split("\n")
    .filter((line) => line.endsWith(".m4s"))
    .map((uri) => new URL(uri, playlist).href);
}

test("a video plays before it is encoded, its end is encoded on request, and a killed server completes it", async () => {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { env, args });
  const key = await tenantKey(server);
  const made = await uploaded(server, key, {
    bytes: readFileSync(clip),
    early_playback: true,
    playback_policy: "public",
  });
  const assetOn = async (one: RunningServer) => (await one.as(key).getAsset(made.asset.id)).body;
  await until("the asset is ready", async () => (await assetOn(server)).playback_status === "ready", 120_000);
  expect(await assetOn(server)).toMatchObject({ encoding_status: "partial", storyboard_path: null });

  const { body: playback } = await server.as(key).getPlayback(made.asset.id);
  const master = await (await fetch(playback.hls_url)).text();
  const playlists = master
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((uri) => new URL(uri, playback.hls_url).href);
  expect(playlists).toHaveLength(3);
  for (const playlist of playlists) expect(await segmentsOf(playlist)).toHaveLength(Math.ceil(SECONDS / 4));
  // Players begin with the first one: it exists already.
  expect(playlists.map((playlist) => playlist.split("/").at(-2))).toEqual(["480p", "360p", "720p"]);
  const low = await segmentsOf(playlists[1] as string);
  expect(await requested(low[0] as string)).toBeGreaterThan(1000);
  // Far ahead of what is encoded.
  expect(await requested(low.at(-4) as string)).toBeGreaterThan(1000);
  expect(await assetOn(server)).toMatchObject({ playback_status: "ready", encoding_status: "partial" });
  expect((await fetch((low[0] as string).replace("00001.m4s", "00099.m4s"))).status).toBe(404);

  server.child.kill("SIGKILL");
  await server.ended;
  const again = await startServer(dataDir, { env, args });
  expect(await assetOn(again)).toMatchObject({ playback_status: "ready", encoding_status: "partial" });
  await until("it is encoded", async () => (await assetOn(again)).encoding_status === "complete", 300_000);
  expect((await assetOn(again)).storyboard_path).not.toBeNull();
  const { body: whole } = await again.as(key).getPlayback(made.asset.id);
  expect(await complaints("-i", whole.hls_url, "-map", "0", "-f", "null", "-")).toBe("");
  const counted = ["-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets"];
  const counts = (await ffprobe(...counted, "-of", "csv=p=0", whole.hls_url)).split("\n").filter(Boolean);
  expect(new Set(counts.map(Number.parseFloat).filter(Number.isFinite))).toEqual(new Set([SECONDS * FPS]));
  await stopCleanly(again);
  const types = rowsOf(dataDir).events.map(({ type }) => type);
  for (const once of ["video.asset.ready", "video.asset.encoded"])
    expect(types.filter((type) => type === once)).toHaveLength(1);
  expect(rowsOf(dataDir).attempts).toHaveLength(1);
});
