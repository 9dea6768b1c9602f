import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { BUILT_IN_PROFILES, specOf } from "#media/encoding-profiles.ts";
import type { EncodingSpec } from "#media/encoding-spec.ts";
import type { EncodeResult } from "#media/finish.ts";
import { withGains } from "#media/loudness.ts";
import { encodeChunk } from "#media/parallel/chunk.ts";
import type { StoredPlan } from "#media/parallel/stored-plan.ts";
import { planEncode } from "#media/plan.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { ProfileDefinition } from "#protocol/encoding-profile.ts";
import { rows } from "#test/support/amount.ts";
import { binaries, complaints, fast, ffmpeg, ffprobe, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("profiles");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FPS = 10;
const GRAY = ["-f", "lavfi", "-i", `color=c=gray:s=480x270:r=${FPS}:d=12`];
/** Seconds of noise, with pauses, like speech. */
const NOISE = (level: string) => [
  ...["-f", "lavfi", "-i", `aevalsrc=(random(0)*2-1)*${level}*gt(mod(t\\,2)\\,0.6):s=48000:d=12`],
];
const watermark = join(folder, "mark.png");
const video = join(folder, "video.mp4");

beforeAll(async () => {
  await ffmpeg(...GRAY, ...NOISE("0.02"), ...fast, "-pix_fmt", "yuv420p", video);
  await ffmpeg("-f", "lavfi", "-i", "color=c=red:s=40x20,format=rgba", "-frames:v", "1", watermark);
});

const spec = (fields: Partial<ProfileDefinition>): EncodingSpec =>
  specOf({ ...BUILT_IN_PROFILES.default.definition, ...fields }, "0".repeat(64));

let count = 0;
type Encoded = EncodeResult & { dir: string };
async function encoded(
  fields: Partial<ProfileDefinition>,
  { input = video, image = watermark } = {},
): Promise<Encoded> {
  const dir = join(folder, `out-${++count}`);
  const media = await probe(input, binaries);
  const common = { input, outDir: dir, probe: media, binaries, scratchDir: folder };
  return { ...(await encode({ ...common, spec: spec(fields), watermark: image })), dir };
}

test("measuring loudness is seen to advance, before anything is encoded", async () => {
  const media = await probe(video, binaries);
  const loud = spec({ audio: { ...BUILT_IN_PROFILES.default.definition.audio, loudness: "ebu_r128" } });
  let moves = 0;
  const run = { cwd: folder, reads: [video], onMove: () => moves++ };
  const { audio } = planEncode(media, loud);
  const [track] = await withGains(audio, { input: video, spec: loud, ffmpeg: binaries.ffmpeg, run });
  expect(track?.gain?.db).not.toBe(0);
  // It is decoded once, and encoded and decoded once.
  expect(moves).toBeGreaterThanOrEqual(2);
});

/** Integrated loudness of a rendition, in LUFS, and its true peak in dB, as the system's ffmpeg measures them. */
async function loudnessOf({ dir }: Encoded) {
  const { stderr } = await promisify(execFile)("ffmpeg", [
    ...["-nostdin", "-hide_banner", "-i", join(dir, "audio", "playlist.m3u8")],
    ...["-af", "loudnorm=print_format=json", "-f", "null", "-"],
  ]);
  const { input_i, input_tp } = JSON.parse(stderr.slice(stderr.lastIndexOf("{")));
  const value = (text: string) => (text === "-inf" ? Number.NEGATIVE_INFINITY : Number(text));
  return { lufs: value(input_i), peak: value(input_tp) };
}

/** Red, green and blue of one pixel of a rendition, at fractions of its width and height. */
async function pixel(dir: string, rendition: string, x: number, y: number, seconds = 2): Promise<number[]> {
  const playlist = join(dir, rendition, "playlist.m3u8");
  const filters = `select=gte(t\\,${seconds}),crop=2:2:iw*${x}:ih*${y},scale=1:1,format=rgb24`;
  return [...(await ffmpeg("-i", playlist, "-vf", filters, "-frames:v", "1", "-f", "rawvideo", "-"))];
}
const isReddish = ([red = 0, green = 0]: number[]) => red - green > 60;

describe("an encoding profile", () => {
  test("determines the ladder and its caps", async () => {
    const ladder = [
      { height: 120, max_bitrate: 200_000 },
      { height: 200, max_bitrate: 500_000 },
      { height: 1080, max_bitrate: 5_000_000 },
    ];
    const result = await encoded({ ladder });
    expect(result.renditions.map(({ name, width, height }) => [name, width, height])).toEqual([
      ["270p", 480, 270],
      ["200p", 356, 200],
      ["120p", 214, 120],
    ]);
    const limited = await encoded({ ladder, max_height: 200 });
    expect(limited.renditions.map(({ name }) => name)).toEqual(["200p", "120p"]);
    expect(planEncode(await probe(video, binaries), spec({ ladder, max_height: 200 })).video?.renditions).toMatchObject(
      [
        { maxBitrate: 500_000, buffer: 750_000 },
        { maxBitrate: 200_000, buffer: 300_000 },
      ],
    );
  });

  test("for audio only leaves the video out", async () => {
    const result = await encoded({ ladder: [] });
    expect(result).toMatchObject({ width: null, height: null, storyboard: null });
    expect(result.renditions).toMatchObject([{ name: "audio", codecs: "mp4a.40.2", width: null }]);
    expect(readdirSync(result.dir).sort()).toEqual(["audio", "manifest.mpd", "master.m3u8", "thumbnail.jpg"]);
    expect(await complaints("-i", join(result.dir, "master.m3u8"), "-f", "null", "-")).toBe("");
    const silent = join(folder, "silent.mp4");
    await ffmpeg(...GRAY, ...fast, silent);
    await expect(encoded({ ladder: [] }, { input: silent })).rejects.toMatchObject({
      code: "unsupported_format",
      retryable: false,
    });
  });

  test("determines the bitrate of audio, which is not copied then", async () => {
    const { dir } = await encoded({ audio: { bitrate: 32_000, channels: 2, loudness: "keep" } });
    const playlist = join(dir, "audio", "playlist.m3u8");
    const bytes = readdirSync(join(dir, "audio"))
      .filter((name) => name.endsWith(".m4s"))
      .reduce((sum, name) => sum + readFileSync(join(dir, "audio", name)).length, 0);
    expect((bytes * 8) / 12).toBeLessThan(42_000);
    expect(await ffprobe("-show_entries", "stream=codec_name,channels", "-of", "csv=p=0", playlist)).toContain("aac,2");
  });

  const PEAKS = "0.05*(random(0)*2-1)+0.9*exp(-mod(t\\,0.5)*60)*sin(2*PI*200*t)";
  test.each(
    rows(
      [
        ["quiet audio", NOISE("0.02"), -23],
        ["loud audio", NOISE("0.9"), -23],
        ["quiet audio to a loud target, whose peaks are limited", NOISE("0.02"), -12],
        [
          "beats whose peaks are limited by several decibels",
          ["-f", "lavfi", "-i", `aevalsrc=${PEAKS}:s=48000:d=12`],
          -14,
        ],
        [
          "audio of which the encoder leaves out a part",
          ["-f", "lavfi", "-i", "anoisesrc=c=pink:d=12:r=48000:a=0.3"],
          -16,
        ],
      ],
      1,
    ),
  )("normalizes %s", async (what, source, target) => {
    const input = join(folder, `${what.replaceAll(" ", "-")}.mkv`);
    await ffmpeg(...GRAY, ...source, ...fast, "-c:a", "pcm_s16le", input);
    const kept = await loudnessOf(await encoded({}, { input }));
    expect(Math.abs(kept.lufs - target)).toBeGreaterThan(3);
    const loudness = target === -23 ? "ebu_r128" : { target_lufs: target };
    const normalized = await loudnessOf(
      await encoded({ audio: { bitrate: 128_000, channels: 2, loudness } as ProfileDefinition["audio"] }, { input }),
    );
    expect(Math.abs(normalized.lufs - target)).toBeLessThanOrEqual(0.5);
    expect(normalized.peak).toBeLessThan(0.5);
  });

  test("does not amplify silence", async () => {
    const input = join(folder, "silence.mp4");
    await ffmpeg(...GRAY, "-f", "lavfi", "-i", "anullsrc=d=12", ...fast, input);
    const { lufs } = await loudnessOf(
      await encoded({ audio: { bitrate: 128_000, channels: 2, loudness: "ebu_r128" } }, { input }),
    );
    expect(lufs).toBeLessThan(-60);
  });
});

describe("a watermark", () => {
  const mark = (position: "top-left" | "bottom-right" | "center", opacity = 1) => ({
    watermark: { position, opacity, width_percent: 20 },
    ladder: [
      { height: 270, max_bitrate: 900_000 },
      { height: 180, max_bitrate: 400_000 },
    ],
  });

  test.each(
    rows(
      [
        ["top-left", 0.1, 0.08],
        ["bottom-right", 0.9, 0.92],
        ["center", 0.5, 0.5],
      ] as const,
      1,
    ),
  )("is at the %s of all renditions", async (position, x, y) => {
    const { dir } = await encoded(mark(position));
    for (const rendition of ["270p", "180p"])
      for (const [place, at] of Object.entries({
        "top-left": [0.1, 0.08],
        "bottom-right": [0.9, 0.92],
        center: [0.5, 0.5],
      })) {
        const color = await pixel(dir, rendition, at[0] as number, at[1] as number, 9);
        expect(isReddish(color), `${rendition} ${place} ${color}`).toBe(at[0] === x && at[1] === y);
      }
  });

  test("is as transparent as its opacity says", async () => {
    const full = await encoded(mark("center"));
    const half = await encoded(mark("center", 0.5));
    const [fullRed = 0, fullGreen = 0] = await pixel(full.dir, "270p", 0.5, 0.5);
    const [halfRed = 0, halfGreen = 0] = await pixel(half.dir, "270p", 0.5, 0.5);
    // The image is converted to BT.709; the untagged test video is read as BT.601.
    expect(fullRed).toBeGreaterThan(225);
    expect(fullGreen).toBeLessThan(20);
    expect(Math.abs(halfRed - (255 + 128) / 2)).toBeLessThan(20);
    expect(Math.abs(halfGreen - 128 / 2)).toBeLessThan(20);
  });

  test.each(
    rows(
      [
        ["wide", "4096x1", 100, [0.5, 0.964], [0.5, 0.5]],
        ["high", "1x4096", 100, [0.98, 0.5], [0.5, 0.5]],
        ["as large as the video", "48x27", 100, [0.99, 0.99], null],
      ] as const,
      1,
    ),
  )("that is %s is inside of the video", async (_, size, width_percent, [x, y], outside) => {
    const image = join(folder, `${size}.png`);
    await ffmpeg("-f", "lavfi", "-i", `color=c=red:s=16x16,format=rgba,scale=${size}`, "-frames:v", "1", image);
    const { dir } = await encoded(
      { ladder: mark("center").ladder, watermark: { position: "bottom-right", opacity: 1, width_percent } },
      { image },
    );
    expect(isReddish(await pixel(dir, "270p", x, y))).toBe(true);
    if (outside) expect(isReddish(await pixel(dir, "270p", outside[0], outside[1]))).toBe(false);
  });

  test("is in every chunk of a source that is encoded in parts", async () => {
    const media = await probe(video, binaries);
    const chosen = spec(mark("top-left"));
    const plan: StoredPlan = {
      ...planEncode(media, chosen),
      seekBackSeconds: 0.1,
      frames: null,
      hdrMetadata: null,
      warnings: [],
    };
    const outDir = join(folder, `out-${++count}`);
    const workDir = join(folder, "chunk");
    for (const directory of [outDir, workDir]) mkdirSync(directory);
    await encodeChunk({
      input: video,
      outDir,
      workDir,
      plan,
      spec: chosen,
      binaries,
      watermark,
      chunk: {
        number: 1,
        first_segment: 1,
        segments: 1,
        first_frame: 4 * FPS,
        end_frame: 8 * FPS,
        renditions: null,
        is_urgent: false,
      },
      run: { cwd: folder, reads: [video], writes: [outDir] },
    });
    const single = join(folder, "single.mp4");
    await ffmpeg(
      "-i",
      `concat:${join(outDir, "270p", "init.mp4")}|${join(outDir, "270p", "00002.m4s")}`,
      ...["-c", "copy", single],
    );
    const crop = "crop=2:2:48:20,scale=1:1,format=rgb24";
    expect(isReddish([...(await ffmpeg("-i", single, "-vf", crop, "-frames:v", "1", "-f", "rawvideo", "-"))])).toBe(
      true,
    );
  });

  test("is not lost because a source could be copied", async () => {
    const input = join(folder, "fit.mp4");
    await ffmpeg(...GRAY, ...fast, "-g", String(2 * FPS), "-bf", "0", "-pix_fmt", "yuv420p", input);
    const plain = await encoded({ ladder: mark("center").ladder }, { input });
    expect(isReddish(await pixel(plain.dir, "270p", 0.5, 0.5))).toBe(false);
    const marked = await encoded(mark("center"), { input });
    expect(isReddish(await pixel(marked.dir, "270p", 0.5, 0.5))).toBe(true);
  });
});
