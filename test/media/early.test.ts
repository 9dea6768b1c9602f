import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import HLS from "hls-parser";
import { afterAll, expect, test, vi } from "vitest";
import { encode } from "../../src/media/encode.ts";
import { encodingSpec as spec } from "../../src/media/encoding-spec.ts";
import type { EncodeResult } from "../../src/media/finish.ts";
import { probe } from "../../src/media/probe.ts";
import { flashing } from "./matrix-sources.ts";
import { binaries, complaints, ffmpeg, sound, temporaryFolder } from "./sources.ts";

vi.setConfig({ testTimeout: 180_000 });

const folder = temporaryFolder("early");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const GOP = ["-x264-params", "keyint=50:min-keyint=1:scenecut=0"];
const h264 = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "26", "-pix_fmt", "yuv420p"];
/** Below the bitrate cap of its rendition. */
const shown = flashing("640x360", "25", 9);
const stampsOf = (dir: string, files: string[]) =>
  Object.fromEntries(
    files.map((file) => [file, `${statSync(join(dir, file)).mtimeMs} ${statSync(join(dir, file)).size}`]),
  );

async function made(name: string, args: string[]) {
  const input = join(folder, name);
  await ffmpeg(...args, input);
  const outDir = `${input}.out`;
  const told: { result: EncodeResult; stamps: Record<string, string>; furthest: number }[] = [];
  let furthest = 0;
  const result = await encode({
    ...{ input, outDir, spec, binaries, scratchDir: folder, probe: await probe(input, binaries) },
    onProgress: (fraction) => {
      furthest = fraction;
    },
    onEarly: async (early) => {
      // Complete already: a viewer who starts now can watch all of it.
      expect(await complaints("-i", join(outDir, early.manifest), "-f", "null", "-")).toBe("");
      told.push({ result: early, stamps: stampsOf(outDir, early.files), furthest });
    },
  });
  expect(told).toHaveLength(1);
  const [early] = told as [(typeof told)[0]];
  return { result, early, outDir };
}
const variants = (dir: string, manifest: string) =>
  (HLS.parse(readFileSync(join(dir, manifest), "utf8")) as HLS.types.MasterPlaylist).variants.flatMap((one) =>
    one.isIFrameOnly ? [] : [one.uri],
  );
const cuts = (dir: string, uri: string) =>
  (HLS.parse(readFileSync(join(dir, uri), "utf8")) as HLS.types.MediaPlaylist).segments.map(({ duration }) =>
    Number(duration.toFixed(2)),
  );

test.each([
  ["a fit source, copied", "fit.mp4", GOP, "360p", 0.05],
  ["any other, its smallest step", "other.mkv", [], "240p", 0.3],
])("%s plays first; the others are added without changing it", async (_, name, how, first, most) => {
  const { result, early, outDir } = await made(name, [...shown, ...sound(9), ...h264, ...how]);
  expect(early.result.renditions.map((one) => one.name)).toEqual([first]);
  expect(early.furthest).toBeLessThan(most);
  expect(variants(outDir, early.result.manifest)).toEqual([`${first}/playlist.m3u8`]);
  expect(result.renditions.map((one) => one.name)).toEqual(["360p", "240p"]);
  expect(variants(outDir, result.manifest).toSorted()).toEqual(["240p/playlist.m3u8", "360p/playlist.m3u8"]);
  expect(cuts(outDir, "360p/playlist.m3u8")).toEqual(cuts(outDir, "240p/playlist.m3u8"));
  expect(await complaints("-i", join(outDir, result.manifest), "-f", "null", "-")).toBe("");
  // A viewer of the early version continues with the same bytes. The thumbnail may have been replaced by a better one.
  const kept = early.result.files.filter((file) => file !== result.thumbnail);
  const now = stampsOf(outDir, kept);
  for (const file of kept.filter((each) => each.endsWith(".m4s") || each.endsWith("init.mp4")))
    expect(now[file], file).toBe(early.stamps[file]);
  expect(result.files).toEqual(expect.arrayContaining(kept));
  expect(result.storyboard).not.toBeNull();
});

test.each([
  ["silent", [], ["360p"], ["360p-whole", "240p-whole"]],
  // The first pass already decodes the audio.
  ["heard", sound(9), ["240p"], ["360p", "240p"]],
])("a damaged copy is discarded, and everything is encoded: %s", async (name, heard, first, last) => {
  const input = join(folder, `${name}.mp4`);
  await ffmpeg(...shown, ...heard, ...h264, ...GOP, input);
  const bytes = readFileSync(input);
  // In the middle of the video: packets and times are unchanged.
  bytes.fill(0xa5, Math.floor(bytes.length * 0.6), Math.floor(bytes.length * 0.6) + 3000);
  const damaged = join(folder, `${name}-damaged.mp4`);
  writeFileSync(damaged, bytes);
  const outDir = `${damaged}.out`;
  const early: EncodeResult[] = [];
  const result = await encode({
    ...{ input: damaged, outDir, spec, binaries, scratchDir: folder, probe: await probe(damaged, binaries) },
    onEarly: async (told) => {
      early.push(told);
    },
  });
  expect(early.map((one) => one.renditions.map((each) => each.name))).toEqual([first]);
  expect(result.renditions.map((one) => one.name)).toEqual(last);
  expect(await complaints("-i", join(outDir, result.manifest), "-f", "null", "-")).toBe("");
  expect(result.files).toEqual(expect.arrayContaining(early[0]?.files ?? []));
});

test("an audio-only source has no early playback", async () => {
  const input = join(folder, "song.mp3");
  await ffmpeg(...sound(3), "-c:a", "libmp3lame", input);
  const outDir = `${input}.out`;
  const onEarly = vi.fn(async () => {});
  const found = await probe(input, binaries);
  await encode({ input, outDir, spec, binaries, scratchDir: folder, probe: found, onEarly });
  expect(onEarly).not.toHaveBeenCalled();
});
