import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { type EncodingSpec, encodingSpec as spec } from "#media/encoding-spec.ts";
import { storyboardInterval } from "#media/storyboard.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { rows } from "#test/support/amount.ts";
import { binaries, fast, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("storyboard");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A video whose gray level increases by one step per second, so that a tile shows its time. */
async function greying(name: string, seconds: number, size: string): Promise<string> {
  const input = join(folder, name);
  const picture = `color=c=black:s=${size}:r=25:d=${seconds},geq=lum='16+${200 / seconds}*T':cb=128:cr=128`;
  await ffmpeg("-f", "lavfi", "-i", picture, ...fast, input);
  return input;
}

const made = async (input: string, dir = `${input}.out`, wanted: EncodingSpec = spec) =>
  encode({ input, outDir: dir, spec: wanted, binaries, scratchDir: folder, probe: await probe(input, binaries) });

test.each(
  rows(
    [
      ["wide", "320x180", 25, "160x90"],
      ["tall", "180x320", 9, "90x160"],
      ["short", "320x180", 1, "160x90"],
    ] as const,
    2,
  ),
)("%s: every tile shows its time", async (name, size, seconds, tile) => {
  const input = await greying(`${name}.mp4`, seconds, size);
  const { storyboard, files } = await made(input);
  const dir = `${input}.out`;
  expect(storyboard).toBe("storyboard.vtt");
  expect(files).toEqual(expect.arrayContaining(["storyboard.vtt", "storyboard-1.jpg"]));
  const text = readFileSync(join(dir, "storyboard.vtt"), "utf8");
  const cues = [...text.matchAll(/^([\d:.]+) --> ([\d:.]+)\nstoryboard-1\.jpg#xywh=(\d+),(\d+),(\d+),(\d+)$/gm)];
  const clock = (value = "") => value.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
  expect(cues.length).toBe(Math.ceil(seconds / 2));
  expect(clock(cues.at(-1)?.[2])).toBeCloseTo(seconds, 1);
  for (const [index, [, from, , x, y, w, h]] of cues.entries()) {
    expect(clock(from)).toBe(index * 2);
    expect(`${w}x${h}`).toBe(tile);
    const part = `crop=${w}:${h}:${x}:${y},scale=1:1:flags=area,format=gray`;
    const [grey] = await ffmpeg("-i", join(dir, "storyboard-1.jpg"), "-vf", part, "-f", "rawvideo", "-");
    // Full range of the JPEG: 16 is 0 and 216 is 233.
    expect(Math.abs((grey as number) - (200 / seconds) * index * 2 * (255 / 219))).toBeLessThan(6);
  }
  const manifest = readFileSync(join(dir, "manifest.mpd"), "utf8");
  const grid = /thumbnail_tile" value="(\d+)x(\d+)"/.exec(manifest) ?? [];
  const [columns, lines] = grid.slice(1).map(Number);
  const shape = await ffprobe("-show_entries", "stream=width,height", "-of", "csv=p=0", join(dir, "storyboard-1.jpg"));
  const [wide = 0, high = 0] = tile.split("x").map(Number);
  expect(shape.trim()).toBe(`${wide * (columns ?? 0)},${high * (lines ?? 0)}`);
});

test("has so few thumbnails that a day fits on a sheet", () => {
  for (const seconds of [0.04, 2, 199, 200, 201, 3600, 7200, 86_400]) {
    const interval = storyboardInterval(seconds, spec);
    expect(Math.ceil(seconds / interval)).toBeLessThanOrEqual(spec.storyboard.max_tiles);
    expect(interval === 2 || interval % 4 === 0).toBe(true);
  }
});

test("its failure does not fail the job", async () => {
  const input = await greying("refused.mp4", 1, "160x90");
  const dir = join(folder, "refused");
  mkdirSync(join(dir, "storyboard-1.jpg"), { recursive: true });
  const result = await made(input, dir);
  expect(result.storyboard).toBeNull();
  expect(readFileSync(join(dir, "manifest.mpd"), "utf8")).not.toContain("thumbnail_tile");
});

test("none is created when the specification does not ask for one", async () => {
  const input = await greying("unwanted.mp4", 1, "160x90");
  const wanted = { ...spec, storyboard: { ...spec.storyboard, enabled: false } };
  const { storyboard, files } = await made(input, `${input}.out`, wanted);
  expect(storyboard).toBeNull();
  expect(files.filter((name) => name.includes("storyboard"))).toEqual([]);
  expect(readFileSync(join(`${input}.out`, "manifest.mpd"), "utf8")).not.toContain("thumbnail_tile");
});
