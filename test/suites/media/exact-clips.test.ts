import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { similarity, workOnce } from "#test/support/clip-worker.ts";
import { createClip, downloaded, film, filmAsset, frameHashes } from "#test/support/clips.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { complaints, ffmpeg, ffprobe } from "#test/support/media/sources.ts";

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "10000/60" });
  key = await app.key((await app.tenant()).id);
  return app.close;
});

const playback = async (id: number) => (await app.as(key).getPlayback(id)).body;
const shown = async (id: number) => (await app.as(key).getAsset(id)).body;

async function cut(id: number, start_seconds: number, end_seconds: number) {
  const { status, text, body } = await createClip(app, key, id, { start_seconds, end_seconds, mode: "exact" });
  if (status !== 201) throw new Error(text);
  expect(await workOnce(app)).toBe("completed");
  return shown(body.id);
}

const gray = (rate: string, more: string[] = []) => [
  ...["-f", "lavfi", "-i", `testsrc2=s=640x360:r=${rate}:d=13`, "-f", "lavfi", "-i", "sine=d=13:sample_rate=44100"],
  ...["-c:v", "libx264", "-profile:v", "high", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-c:a", "aac", ...more],
];

const SOURCES: [string, string[], number, boolean][] = [
  ["29.97 frames per second", gray("30000/1001"), 30_000 / 1001, false],
  [
    "a copied source without B-frames",
    gray("25", ["-g", "65", "-keyint_min", "65", "-sc_threshold", "0", "-bf", "0"]),
    25,
    true,
  ],
  [
    "a copied source with B-frames",
    gray("30", ["-g", "60", "-keyint_min", "60", "-sc_threshold", "0", "-profile:v", "main"]),
    30,
    true,
  ],
  ["50 frames per second", gray("50"), 50, false],
];

test.each(rows(SOURCES, 1))("all renditions of %s are cut at the same frames", async (_, source, rate, isCopied) => {
  const { id } = await filmAsset(app, key, await film(source), { playback_policy: "public" });
  const start = 3.3;
  const end = 11.71;
  const clip = await cut(id, start, end);
  const [from, to] = [start, end].map((seconds) => Math.ceil(seconds * rate - 0.05)) as [number, number];
  expect(clip.duration_seconds).toBeCloseTo((to - from) / rate, 2);
  const file = await downloaded(app, (await playback(clip.id)).hls_url);
  const whole = await downloaded(app, (await playback(id)).hls_url);
  const variants = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.endsWith("playlist.m3u8"));
  expect(variants.length).toBe(2);
  // A copied rendition has other parameter sets than encoded frames: its init segment has both.
  const { manifest_path } = await shown(clip.id);
  const folder = manifest_path.replace(/[^/]*$/, "");
  const own = ((await app.opened.app.objects?.list(folder))?.objects ?? []).filter((one) =>
    one.key.endsWith("/init.mp4"),
  );
  expect(own.map((one) => one.key.slice(folder.length))).toEqual(isCopied ? ["360p/init.mp4"] : []);
  for (const variant of variants) {
    const one = join(dirname(file), variant);
    const other = join(dirname(whole), onlyVersion(variant, whole));
    expect(await complaints("-i", one, "-f", "null", "-")).toBe("");
    const frames = await frameHashes(one);
    expect(frames).toHaveLength(to - from);
    const all = await frameHashes(other);
    const same = frames.filter((hash, index) => hash === all[from + index]).length;
    // Between the keyframes that follow the start and precede the end.
    expect(same).toBeGreaterThan((to - from) / 2);
    expect(Math.min(...(await similarity(one, other, from, to - from)))).toBeGreaterThan(28);
  }
});

/** The same rendition of another asset: paths begin with the version of its media. */
function onlyVersion(variant: string, manifest: string): string {
  const name = variant.split("/").at(-2);
  return readFileSync(manifest, "utf8")
    .split("\n")
    .find((line) => line.endsWith(`/${name}/playlist.m3u8`)) as string;
}

test("an audio file is cut at packets, by a worker on the server's disk", async () => {
  const path = join(emptyFolder(), "audio.m4a");
  await ffmpeg("-f", "lavfi", "-i", "sine=d=20:sample_rate=48000", "-c:a", "aac", path);
  const { asset } = await uploaded(app, key, { bytes: readFileSync(path), playback_policy: "public" });
  const sharedDisk = { dataDir: app.opened.app.config.data_dir };
  while ((await shown(asset.id)).playback_status !== "ready")
    expect(await workOnce(app, { sharedDisk })).toBe("completed");
  const body = { start_seconds: 3.33, end_seconds: 13.21, mode: "exact" };
  const { body: clip, status } = await createClip(app, key, asset.id, body);
  expect(status).toBe(201);
  expect(await workOnce(app, { sharedDisk })).toBe("completed");
  const { playback_status, duration_seconds, width } = await shown(clip.id);
  expect([playback_status, width]).toEqual(["ready", null]);
  expect(Math.abs(duration_seconds - 9.88)).toBeLessThan(2 * (1024 / 48_000));
  const { hls_url, thumbnail_url } = await playback(clip.id);
  const sound = await ffprobe("-show_entries", "packet=pts_time", "-of", "csv=p=0", await downloaded(app, hls_url));
  expect((sound.split("\n").filter(Boolean).length * 1024) / 48_000).toBeCloseTo(duration_seconds, 3);
  expect((await app.opened.server.fetch(new Request(thumbnail_url))).status).toBe(200);
});
