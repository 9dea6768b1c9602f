import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import HLS from "hls-parser";
import { parse as parseMpd } from "mpd-parser";
import { afterAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import type { EncodeResult } from "#media/finish.ts";
import { probeSource as probe } from "#media/timeline.ts";
import { isNightly } from "#test/support/amount.ts";
import { oddRows } from "#test/support/media/matrix-odd-rows.ts";
import { Players } from "#test/support/media/matrix-players.ts";
import { rows } from "#test/support/media/matrix-rows.ts";
import type { Row } from "#test/support/media/matrix-sources.ts";
import { binaries, complaints, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";

vi.setConfig({ maxConcurrency: 2 });

const folder = temporaryFolder("matrix");
const players = new Players(folder);
afterAll(async () => {
  await players.close();
  rmSync(folder, { recursive: true, force: true });
});
/** Every one is played by three players with MATRIX_PLAYERS=all; by default one of each kind of result. */
const arePlayed = (row: Row) => isNightly || process.env.MATRIX_PLAYERS === "all" || row.isPlayed;

type Made = EncodeResult & { dir: string; input: string };
type Media = { segments: { duration: number; uri: string }[]; targetDuration: number };
type Master = {
  variants: {
    uri: string;
    isIFrameOnly?: boolean;
    resolution?: { width: number; height: number };
    audio: { uri: string; language?: string; name: string }[];
  }[];
};

async function made(row: Row, index: number): Promise<Made> {
  const input = join(folder, `${index}-${row.file}`);
  if (typeof row.from === "function") await row.from(input);
  else await ffmpeg(...row.from, input);
  const dir = join(folder, `${index}`);
  const found = await probe(input, binaries);
  const result = await encode({ input, outDir: dir, spec, binaries, scratchDir: folder, probe: found });
  return { ...result, dir, input };
}

const read = (dir: string, uri: string) => readFileSync(join(dir, uri), "utf8");
const media = (dir: string, uri: string) => HLS.parse(read(dir, uri)) as unknown as Media;
const length = ({ segments }: Media) => segments.reduce((sum, one) => sum + one.duration, 0);
const cutsOf = ({ segments }: Media) => segments.map(({ duration }) => duration);

/** Keyframe times of a rendition, in seconds. */
async function keyTimes(path: string): Promise<number[]> {
  const packets = await ffprobe(
    "-select_streams",
    "v",
    "-show_entries",
    "packet=pts_time,flags",
    "-of",
    "csv=p=0",
    path,
  );
  return packets
    .split("\n")
    .filter((line) => line.includes(",K"))
    .map(Number.parseFloat);
}

/** The first time at which the video is white, and at which there is audio. */
async function onsets(result: Made, sound: string): Promise<[number, number]> {
  const top = result.renditions[0]?.playlist_path as string;
  const [grey, samples] = await Promise.all([
    ffmpeg(
      ...["-i", join(result.dir, top), "-map", "0:v", "-vf", "scale=8:8:flags=area,format=gray"],
      ...["-f", "rawvideo", "-"],
    ),
    ffmpeg(...["-i", join(result.dir, sound), "-map", "0:a", "-ac", "1", "-f", "s16le", "-"]),
  ]);
  let white = 0;
  while (white < grey.length && Math.min(...grey.subarray(white, white + 64)) < 215) white += 64;
  let loud = 0;
  while (loud < samples.length && Math.abs(samples.readInt16LE(loud)) < 6000) loud += 2;
  if (white >= grey.length || loud >= samples.length) return [Number.NaN, Number.NaN];
  return [white / 64 / (result.frameRate as number), loud / 2 / spec.audio.sample_rate];
}

/** Compares the top rendition with the source as it should look. */
async function similarity({ dir, input, renditions, frameRate }: Made, seen: string): Promise<number> {
  const [top] = renditions;
  const rate = (
    await ffprobe(
      "-select_streams",
      "v",
      "-show_entries",
      "stream=r_frame_rate",
      "-of",
      "csv=p=0",
      join(dir, top?.playlist_path as string),
    )
  ).split(/[\n,]/)[0];
  expect(frameRate).toBeGreaterThan(0);
  const same = `scale=${top?.width}:${top?.height}:flags=bicubic,setsar=1,format=yuv420p`;
  const graph = `[0:v]${seen ? `${seen},` : ""}fps=${rate}:start_time=0,${same}[a];[1:v]${same}[b];[a][b]ssim`;
  const log = await complaints(
    ...["-v", "info", "-i", input, "-i", join(dir, top?.playlist_path as string)],
    ...["-lavfi", graph, "-f", "null", "-"],
  );
  return Number(/SSIM .*All:([\d.]+)/.exec(log)?.[1]);
}

async function expectReady(row: Row, result: Made): Promise<void> {
  const { dir } = result;
  const { within = 0.1, size = "320x180", sound = 1 } = row;
  const listed = HLS.parse(read(dir, "master.m3u8")) as unknown as Master;
  const master = { variants: listed.variants.filter((one) => !one.isIFrameOnly) };
  if (size) expect(listed.variants.length).toBe(master.variants.length * 2);
  const [top] = master.variants;
  expect(top?.resolution ? `${top.resolution.width}x${top.resolution.height}` : null).toBe(size);
  if (row.rate) expect(result.frameRate).toBe(row.rate);
  const lists = master.variants.map(({ uri }) => media(dir, uri));
  const sounds = (top?.audio ?? []).map(({ uri }) => media(dir, uri));
  if (size) expect(sounds.length).toBe(sound);
  if (row.languages) expect(top?.audio.map(({ language }) => language)).toEqual(row.languages);

  const seconds = result.durationSeconds;
  expect(Math.abs(seconds - (row.seconds ?? 0)), `${result.durationSeconds} s`).toBeLessThan(within);
  for (const list of [...lists, ...sounds])
    expect(Math.abs(length(list) - seconds), `${length(list)} s`).toBeLessThan(0.1);
  for (const list of lists) expect(cutsOf(list)).toEqual(cutsOf(lists[0] as Media));
  const starts = cutsOf(lists[0] as Media).map((_, index, all) => all.slice(0, index).reduce((a, b) => a + b, 0));
  for (const { uri } of size ? master.variants : []) {
    const keys = await keyTimes(join(dir, uri));
    for (const start of starts)
      expect(
        keys.some((key) => Math.abs(key - start) < 0.002),
        `${uri} at ${start}`,
      ).toBe(true);
  }
  expect(result.storyboard).toBe(size ? "storyboard.vtt" : null);
  expect(await complaints("-i", join(dir, "master.m3u8"), "-map", "0", "-f", "null", "-")).toBe("");
  expect(await complaints("-i", join(dir, "manifest.mpd"), "-map", "0", "-f", "null", "-")).toBe("");
  const mpd = parseMpd(read(dir, "manifest.mpd"), { manifestUri: "http://host/manifest.mpd" });
  expect(Math.abs(mpd.duration - seconds)).toBeLessThan(0.1);

  if (size && row.seen !== null) expect(await similarity(result, row.seen ?? "")).toBeGreaterThanOrEqual(0.95);
  if (size && sound && row.flash !== false) {
    const [seen, heard] = await onsets(result, top?.audio[0]?.uri as string);
    expect(Math.abs(seen - heard), `seen at ${seen}, heard at ${heard}`).toBeLessThan(0.045);
  }
}

/** In a browser, to the end, without gaps. */
async function expectPlays({ size = "320x180", sound = 1 }: Row, result: Made, dir: string): Promise<void> {
  for (const { player, ...seen } of await players.play(dir)) {
    expect(seen.error, player).toBeNull();
    expect(seen.left, player).toBeLessThan(0.15);
    expect(Math.abs(seen.duration - result.durationSeconds), player).toBeLessThan(0.15);
    expect(seen.size === null, player).toBe(size === null);
    if (size) expect(result.renditions.map(({ width, height }) => `${width}x${height}`)).toContain(seen.size);
    if (size) expect(seen.frames, player).toBeGreaterThan(0);
    if (sound) expect(seen.soundBytes, player).toBeGreaterThan(0);
    if (size) expect(seen.audioTracks, player).toBe(sound);
  }
}

/** In the full tier a twentieth of those that neither fail nor are played. */
const tested = [...rows, ...oddRows].filter(
  (row, index) => arePlayed(row) || row.fails !== undefined || index % 20 === 0,
);

describe.concurrent("a source", () => {
  test.each(tested.map((row, index) => [row.name, row, index] as const))("%s", async (_, row, index) => {
    const making = made(row, index);
    if (row.fails) await expect(making).rejects.toMatchObject({ code: row.fails, retryable: false });
    else {
      await expectReady(row, await making);
      if (arePlayed(row)) await expectPlays(row, await making, `${index}`);
    }
  });
});
