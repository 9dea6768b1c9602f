import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { requested, rowsOf } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, fast, ffmpeg, ffprobe, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { type RunningServer, startServer, stopCleanly, tenantKey } from "#test/support/process.ts";

const folder = temporaryFolder("vodbox-test-early-audio");
const clip = join(folder, "clip.mp4");
/** Ten parts of its audio. */
const SECONDS = 600;
/** Little work for the video, and audio that is not copied. */
beforeAll(() =>
  ffmpeg(
    ...[...picture("64x36", "5", SECONDS), ...sound(SECONDS), ...fast, "-g", "50"],
    ...["-c:a", "ac3", "-movflags", "+faststart", clip],
  ),
);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = { VODBOX_RATE_LIMIT_UPLOADS: "100000/60", VODBOX_LEASE_SECONDS: "4" };
const args = ["--workers", "1"];

test("the audio at the end of a long video is there before that of its middle, and all of it once at the end", async () => {
  const dataDir = emptyFolder();
  const server = await startServer(dataDir, { env, args });
  const key = await tenantKey(server);
  const fields = { early_playback: true, playback_policy: "public" };
  const { asset } = await uploaded(server, key, { bytes: readFileSync(clip), ...fields });
  const shown = async (one: RunningServer) => (await one.as(key).getAsset(asset.id)).body;
  await until("the asset is ready", async () => (await shown(server)).playback_status === "ready", 120_000);
  const { body: playback } = await server.as(key).getPlayback(asset.id);
  const master = await (await fetch(playback.hls_url)).text();
  const [, uri = ""] = /TYPE=AUDIO.*URI="([^"]+)"/.exec(master) ?? [];
  const list = new URL(uri, playback.hls_url);
  const listed = (await (await fetch(list)).text()).match(/^[^#\n]+\.m4s$/gm) ?? [];
  expect(listed.length).toBeGreaterThan(148);
  const at = (number: number) => new URL(listed[number] as string, list).href;
  expect(await requested(at(listed.length - 5))).toBeGreaterThan(1000);
  // HEAD encodes nothing.
  expect((await fetch(at(100), { method: "HEAD" })).status).toBe(404);
  expect(await shown(server)).toMatchObject({ encoding_status: "partial" });

  server.child.kill("SIGKILL");
  await server.ended;
  const again = await startServer(dataDir, { env, args });
  await until("it is encoded", async () => (await shown(again)).encoding_status === "complete", 200_000);
  const { body: whole } = await again.as(key).getPlayback(asset.id);
  expect(await complaints("-i", whole.hls_url, "-map", "0:a", "-f", "null", "-")).toBe("");
  const times = (
    await ffprobe("-select_streams", "a:0", "-show_entries", "packet=pts", "-of", "csv=p=0", whole.hls_url)
  )
    .split("\n")
    .filter((line) => /^-?\d/.test(line))
    .map(Number.parseFloat);
  const steps = times.slice(1).map((time, index) => time - (times[index] as number));
  // In units of 1/48,000 s, or of 1/90,000 s.
  expect(new Set(steps).size).toBe(1);
  expect(times.length).toBeGreaterThanOrEqual((SECONDS * 48_000) / 1024);
  await stopCleanly(again);
  const { events, attempts } = rowsOf(dataDir);
  for (const once of ["video.asset.ready", "video.asset.encoded"])
    expect(events.filter(({ type }) => type === once)).toHaveLength(1);
  expect(attempts).toHaveLength(1);
});
