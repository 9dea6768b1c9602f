import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import {
  binaries,
  complaints,
  fast,
  ffmpeg,
  ffprobe,
  picture,
  sound,
  temporaryFolder,
} from "#test/support/media/sources.ts";

const folder = temporaryFolder("static-mp4");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("one file of the same bytes, with its index at the beginning, when requested", async () => {
  const input = join(folder, "plain.mp4");
  await ffmpeg(...picture("640x360", "25", 9), ...sound(9), ...fast, input);
  const dir = join(folder, "plain.out");
  const result = await encode({
    input,
    outDir: dir,
    spec,
    binaries,
    scratchDir: folder,
    names: { mp4: "video.mp4" },
    probe: await probe(input, binaries),
  });
  expect([result.mp4, result.files.includes("video.mp4")]).toEqual(["video.mp4", true]);
  const file = join(dir, "video.mp4");
  const bytes = readFileSync(file);
  expect(bytes.indexOf("moov")).toBeLessThan(bytes.indexOf("mdat"));
  expect(await complaints("-i", file, "-map", "0", "-f", "null", "-")).toBe("");
  const entries = "stream=codec_name,height,start_time,duration";
  const { streams: found } = JSON.parse(await ffprobe("-of", "json", "-show_entries", entries, file));
  expect(found).toMatchObject([{ codec_name: "h264", height: 360 }, { codec_name: "aac" }]);
  for (const { start_time, duration } of found) {
    expect(Math.abs(Number(start_time))).toBeLessThan(0.03);
    expect(Math.abs(Number(duration) - 9)).toBeLessThan(0.1);
  }
  const sum = result.files.reduce((total, name) => total + readFileSync(join(dir, name)).length, 0);
  expect(sum).toBe(result.bytes);
});
