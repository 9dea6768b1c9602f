import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { videoTrackOf, windowOf } from "#media/parallel/source-index.ts";
import { probeSource } from "#media/timeline.ts";
import { sample } from "#test/support/amount.ts";
import { beeps, beepsOf, flashes, flashesOf, worstOffset } from "#test/support/media/beeps.ts";
import { framesToEncode } from "#test/support/media/parallel/frames.ts";
import { planned } from "#test/support/media/parallel/parts.ts";
import { binaries, fast, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

/** Sources whose frames or samples change in the middle: audio and video stay in sync, and the size stays. */

const folder = temporaryFolder("changes");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const RATE = 25;
const SECONDS = 5;
/** Contract, section 16. */
const WORST_SECONDS = 0.075;
/** Players and encoders work in frames. */
const LENGTH_TOLERANCE = 0.15;

type Section = {
  size?: string;
  aspect?: string;
  pixels?: string;
  audio?: Parameters<typeof beeps>[1];
  more?: string[];
};
type Row = {
  name: string;
  container: "ts" | "mkv" | "webm" | "mpg" | "flv" | "mp4" | "avi";
  video: string[];
  audio: string[];
  sections: Section[];
  /** Where the last section has bars. */
  bars?: Bars;
};
type Bars = "sides" | "top" | "none";

const x264 = [...fast, "-pix_fmt", "yuv420p", "-g", "25", "-bf", "0"];
const vp8 = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-g", "25"];
const vp9 = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "25"];
const mpeg2 = ["-c:v", "mpeg2video", "-g", "12", "-q:v", "4"];
const aac = ["-c:a", "aac"];
const opus = ["-c:a", "libopus"];
const ac3 = ["-c:a", "ac3"];
const mp2 = ["-c:a", "mp2"];

const layouts = (...all: string[]): Section[] => all.map((layout) => ({ audio: { layout } }));
const rates = (...all: number[]): Section[] => all.map((rate) => ({ audio: { rate } }));
const sizes = (...all: string[]): Section[] => all.map((size) => ({ size }));

const ROWS: Row[] = [
  { name: "mono becomes stereo", container: "ts", video: x264, audio: aac, sections: layouts("mono", "stereo") },
  { name: "stereo becomes mono", container: "ts", video: x264, audio: aac, sections: layouts("stereo", "mono") },
  {
    name: "stereo becomes 5.1 and stereo again",
    container: "ts",
    video: mpeg2,
    audio: ac3,
    sections: layouts("stereo", "5.1", "stereo"),
  },
  { name: "5.1 becomes stereo", container: "mkv", video: x264, audio: ac3, sections: layouts("5.1", "stereo") },
  { name: "the sample rate", container: "ts", video: x264, audio: aac, sections: rates(48000, 44100) },
  { name: "the sample rate, from 32 kHz", container: "ts", video: x264, audio: aac, sections: rates(32000, 44100) },
  {
    name: "the sample rate, to 32 kHz",
    container: "ts",
    video: x264,
    audio: aac,
    sections: rates(48000, 32000, 44100),
  },
  { name: "the sample rate", container: "ts", video: mpeg2, audio: ac3, sections: rates(48000, 44100, 48000) },
  { name: "the sample rate", container: "mpg", video: mpeg2, audio: mp2, sections: rates(32000, 48000) },
  { name: "the sample rate", container: "mkv", video: x264, audio: mp2, sections: rates(44100, 48000) },
  {
    name: "everything of the audio",
    container: "ts",
    video: x264,
    audio: aac,
    sections: [{ audio: { rate: 44100, layout: "mono" } }, { audio: { rate: 48000, layout: "stereo" } }],
  },
  { name: "the size", container: "ts", video: x264, audio: aac, sections: sizes("320x180", "640x360") },
  { name: "the size, smaller", container: "mkv", video: x264, audio: aac, sections: sizes("640x360", "320x180") },
  {
    name: "a phone is turned",
    container: "webm",
    video: vp8,
    audio: opus,
    sections: sizes("320x240", "240x320"),
    bars: "sides",
  },
  { name: "a conference", container: "webm", video: vp9, audio: opus, sections: sizes("160x90", "320x180", "640x360") },
  {
    name: "another aspect",
    container: "ts",
    video: mpeg2,
    audio: mp2,
    sections: sizes("352x288", "640x360"),
    bars: "top",
  },
  {
    name: "another aspect of the same size",
    container: "mpg",
    video: mpeg2,
    audio: mp2,
    sections: [
      { size: "352x288", aspect: "4/3" },
      { size: "352x288", aspect: "16/9" },
    ],
    bars: "top",
  },
  {
    name: "the pixel format",
    container: "mkv",
    video: ["-c:v", "mjpeg", "-q:v", "3"],
    audio: ["-c:a", "flac"],
    sections: [{ pixels: "yuvj420p" }, { pixels: "yuvj444p" }],
  },
  {
    name: "the pixel format",
    container: "ts",
    video: [...fast, "-g", "25", "-bf", "0"],
    audio: aac,
    sections: [{ pixels: "yuv420p" }, { pixels: "yuv420p10le" }],
  },
  {
    name: "the colors",
    container: "ts",
    video: x264,
    audio: aac,
    sections: [
      { more: ["-colorspace", "smpte170m", "-color_primaries", "smpte170m", "-color_trc", "smpte170m"] },
      { more: ["-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"] },
    ],
  },
  {
    name: "everything at once",
    container: "ts",
    video: x264,
    audio: aac,
    sections: [
      { size: "320x240", audio: { rate: 44100, layout: "mono" } },
      { size: "640x360", audio: { rate: 48000, layout: "stereo" } },
      { size: "240x320", audio: { rate: 44100, layout: "mono" } },
    ],
    bars: "sides",
  },
  {
    name: "in FLV, whose configuration changes",
    container: "flv",
    video: x264,
    audio: aac,
    sections: sizes("320x180", "640x360"),
  },
];

const fileOf = (row: Row) => join(folder, `${ROWS.indexOf(row)}-${row.name.replaceAll(/\W/g, "-")}.${row.container}`);

/** Writes the sections one after the other, as recorders do: with times that continue, and headers that change. */
async function write(row: Row): Promise<string> {
  const output = fileOf(row);
  const parts: string[] = [];
  for (const [at, { size = "320x180", aspect, pixels, audio = {}, more = [] }] of row.sections.entries()) {
    const part = `${output}.${at}.${row.container}`;
    const filters = [...(aspect ? [`setdar=${aspect}`] : []), ...(pixels ? [`format=${pixels}`] : [])];
    await ffmpeg(
      ...[...flashes(size, RATE, SECONDS), ...beeps(SECONDS, audio), "-map", "0", "-map", "1"],
      ...(filters.length > 0 ? ["-vf", filters.join(",")] : []),
      ...[...row.video, ...more, ...row.audio, "-shortest", part],
    );
    parts.push(part);
  }
  const list = `${output}.txt`;
  writeFileSync(list, parts.map((part) => `file '${part}'\nduration ${SECONDS}\n`).join(""));
  await ffmpeg("-f", "concat", "-safe", "0", "-i", list, "-map", "0", "-c", "copy", output);
  return output;
}

async function encoded(row: Row) {
  const input = await write(row);
  const dir = `${input}-out`;
  const probe = await probeSource(input, binaries);
  return { input, dir, ...(await encode({ input, outDir: dir, spec, binaries, scratchDir: folder, probe })) };
}

const PLAYLIST = "master.m3u8";
const BRIGHT = 128;

/** Where a frame, which is white otherwise, is black. */
async function barsAt(input: string, seconds: number): Promise<Bars> {
  const graph = "scale=64:36:flags=area,format=gray";
  const pixels = await ffmpeg(
    "-i",
    input,
    "-ss",
    String(seconds),
    "-frames:v",
    "1",
    "-vf",
    graph,
    "-f",
    "rawvideo",
    "-",
  );
  const isBlack = (x: number, y: number) => (pixels[y * 64 + x] ?? 0) < BRIGHT;
  if (isBlack(1, 18) && isBlack(62, 18)) return "sides";
  return isBlack(32, 1) && isBlack(32, 34) ? "top" : "none";
}

describe.concurrent("a change in the middle of a source", () => {
  test.each(sample(ROWS, 2).map((row) => [`${row.name} (${row.container})`, row] as const))("%s", async (_, row) => {
    const { input, dir, renditions, durationSeconds } = await encoded(row);
    const count = row.sections.length * SECONDS;
    expect(Math.abs(durationSeconds - count)).toBeLessThan(LENGTH_TOLERANCE);
    const rate = renditions[0]?.frame_rate ?? RATE;
    const heard = await beepsOf(join(dir, PLAYLIST));
    const seen = await flashesOf(join(dir, PLAYLIST), rate);
    expect(worstOffset(heard, seen, count), `heard ${heard}, seen ${seen}`).toBeLessThan(WORST_SECONDS);
    expect(await barsAt(join(dir, PLAYLIST), (seen.at(-1) ?? 0) + 1 / rate)).toBe(row.bars ?? "none");
    const plan = await planned(input, 1);
    if (plan.uncuttable !== null) return;
    const { video } = plan.plan;
    const index = plan.index && video && videoTrackOf(plan.index, video.track);
    const whole = await framesToEncode(input, plan.plan);
    const parts: string[] = [];
    for (const { first_frame: firstFrame, end_frame: endFrame } of plan.chunks) {
      const window =
        index && video && windowOf(index, { plan: { ...plan.plan, video }, firstFrame, endFrame, threads: 17 });
      const range = { firstFrame, endFrame, seekBackSeconds: plan.plan.seekBackSeconds };
      parts.push(
        ...(await framesToEncode(input, plan.plan, { ...range, ...(window && { seekSeconds: window.seekSeconds }) })),
      );
    }
    // In a program stream the frame at a cut may have no time of its own.
    const differing = whole.filter((hash, at) => hash !== parts[at]).length;
    expect(parts).toHaveLength(whole.length);
    expect(differing).toBeLessThanOrEqual(row.container === "mpg" ? plan.chunks.length - 1 : 0);
  });
});
