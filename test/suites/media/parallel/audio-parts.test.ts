import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rangeOfAudio } from "#features/transcoding/tasks/audio-parts.ts";
import { type EncodingSpec, encodingSpec as spec } from "#media/encoding-spec.ts";
import { encodeAudio } from "#media/parallel/audio.ts";
import { encodeAudioPart } from "#media/parallel/audio-part.ts";
import { planSource } from "#media/parallel/plan-source.ts";
import { audioPartRanges, headRanges, indexOfFile, type SourceIndex } from "#media/parallel/source-index.ts";
import { parsePlan } from "#media/parallel/stored-plan.ts";
import { segmentName } from "#media/parallel/written-rows.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { WrittenRendition } from "#protocol/task.ts";
import { rangesOf } from "#src/lib/isobmff/sample-index.ts";
import { rows } from "#test/support/amount.ts";
import { binaries, fast, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

const folder = temporaryFolder("audio-parts");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SECONDS = 61.3;
const picture = (seconds = SECONDS) => ["-f", "lavfi", "-i", `testsrc2=s=64x36:r=5:d=${seconds}`];
/** A rising tone with bursts of noise: blocks of all kinds, at other times in each second. */
const sound = (rate: number, seconds = SECONDS) => [
  ...["-f", "lavfi", "-i"],
  `aevalsrc=0.3*sin(2*PI*(200+20*t)*t)+0.2*(random(0)*2-1)*gt(mod(t\\,0.7)\\,0.6):s=${rate}:d=${seconds}:c=stereo`,
];

async function source(name: string, ...args: string[]): Promise<string> {
  const path = join(folder, name);
  await ffmpeg(...args, ...fast, "-g", "25", path);
  return path;
}

async function planned(input: string, of: EncodingSpec = spec) {
  const index = await indexOfFile(input).catch(() => null);
  const run = { cwd: folder, reads: [input], writes: [folder] };
  return planSource({ input, probe: await probe(input, binaries), spec: of, binaries, run, index });
}

let count = 0;
const newFolder = () => {
  const path = join(folder, `out-${++count}`);
  mkdirSync(path);
  return path;
};

/** The decoded samples of a track, mono. */
async function samplesOf(outDir: string, { name, segments }: WrittenRendition, first = 0): Promise<Int16Array> {
  const names = ["init.mp4", ...segments.map((_, index) => segmentName(first + index))];
  const whole = `${outDir}.mp4`;
  writeFileSync(whole, Buffer.concat(names.map((file) => readFileSync(join(outDir, name, file)))));
  const bytes = await ffmpeg("-i", whole, "-f", "s16le", "-ac", "1", "-");
  return new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
}

/** How much stronger a signal is than its difference from another one, in dB, in `length` samples from `from` on. */
function ratio(signal: Int16Array, other: Int16Array, from: number, length: number): number {
  let power = 0;
  let noise = 1;
  for (let at = from; at < from + length; at++) {
    power += (signal[at] as number) ** 2;
    noise += ((signal[at] as number) - (other[at] as number)) ** 2;
  }
  return 10 * Math.log10(power / noise);
}

const SOURCES: [string, string, string[]][] = [
  // The last part is filled with silence.
  ["MP3 at 48 kHz, shorter than the video,", "mp3.mp4", [...sound(48_000, SECONDS - 0.3), "-c:a", "libmp3lame"]],
  ["AC-3 at 44.1 kHz", "ac3.mov", [...sound(44_100), "-c:a", "ac3"]],
  // With the delay of its encoder, and of another profile than what is copied.
  ["AAC of five channels at 48 kHz", "aac.mp4", [...sound(48_000), "-ac", "5", "-c:a", "aac"]],
  ["AAC at 32 kHz", "aac-32.mp4", [...sound(32_000), "-c:a", "aac"]],
];

test.each(rows(SOURCES, 1))(
  "parts of %s have the packets of one run, and its samples next to where they join",
  async (_, name, args) => {
    const input = await source(name, ...picture(), ...args);
    const { early, plan: stored } = await planned(input);
    expect(early?.audio_step).toBe(2);
    expect(stored.audio).toMatchObject([{ padToSeconds: expect.closeTo(61.4, 1) }]);
    const plan = parsePlan(JSON.parse(JSON.stringify(stored)));
    const wholeDir = newFolder();
    const outDir = newFolder();
    const run = { cwd: folder, reads: [input], writes: [wholeDir, outDir] };
    const common = { input, plan, spec, binaries, run };
    const [whole] = await encodeAudio({ ...common, outDir: wholeDir });
    const parts: WrittenRendition[] = [];
    const placed: string[] = [];
    // Not in the order of time: each part depends on the source alone.
    for (const [number, from, to] of [
      [2, 10, null],
      [0, 0, 4],
      [1, 4, 10],
    ] as const) {
      const written = await encodeAudioPart(
        { ...common, outDir },
        {
          range: rangeOfAudio({ number, from, to }),
          step: 2,
          workDir: join(folder, "work"),
          onPlaced: async (files) => void placed.push(...files),
        },
      );
      parts.push(...written);
    }
    parts.sort((a, b) => a.first - b.first);
    const rows = parts.flatMap(({ segments }) => segments);
    const times = (all: typeof rows) => all.map(([, start, duration]) => [start, duration]);
    expect(times(rows)).toEqual(times(whole?.segments ?? []));
    expect(new Set([...parts, whole].map((one) => one?.init.sha256)).size).toBe(1);
    expect(new Set(placed).size).toBe(placed.length);
    const one = await samplesOf(wholeDir, whole as WrittenRendition);
    const joined = await samplesOf(outDir, { ...(whole as WrittenRendition) });
    expect(joined.length).toBe(one.length);
    const tenth = 4800;
    const elsewhere = ratio(one, joined, 6 * 4 * 48_000, tenth * 10);
    for (const boundary of [4, 10])
      for (const from of [-2 * tenth, -tenth, 0, tenth]) {
        const at = boundary * 4 * 48_000 + from;
        // As close as the encoder's own noise is anywhere.
        expect(ratio(one, joined, at, tenth), `${boundary} ${from}`).toBeGreaterThan(Math.min(12, elsewhere - 3));
      }
  },
);

test("a part reads only its own samples, and the beginning of the file", async () => {
  const input = await source("own.mp4", ...picture(), ...sound(32_000), "-c:a", "aac", "-movflags", "+faststart");
  const { plan: stored } = await planned(input);
  const plan = parsePlan(JSON.parse(JSON.stringify(stored)));
  const index = (await indexOfFile(input)) as SourceIndex;
  const bytes = readFileSync(input);
  const sparse = join(folder, "sparse.mp4");
  const kept = Buffer.alloc(bytes.length);
  const ranges = audioPartRanges(index, plan, { from: 40, to: 48, isUrgent: false }) ?? [];
  for (const [offset, length] of [...headRanges(index), ...ranges]) bytes.copy(kept, offset, offset, offset + length);
  writeFileSync(sparse, kept);
  expect(ranges.reduce((sum, [, length]) => sum + length, 0)).toBeLessThan(bytes.length * 0.7);
  const part = async (path: string) => {
    const outDir = newFolder();
    const run = { cwd: folder, reads: [path], writes: [outDir] };
    const range = rangeOfAudio({ number: 1, from: 10, to: 12 });
    const options = { input: path, outDir, plan, spec, binaries, run };
    const written = await encodeAudioPart(options, { range, step: 2, workDir: join(folder, "work") });
    const files = [10, 11].map((number) => readFileSync(join(outDir, "audio", segmentName(number))).toString("hex"));
    return { written, files };
  };
  expect(await part(sparse)).toEqual(await part(input));
});

test("copied audio is written before its faults are looked for", async () => {
  const fit = ["-vf", "scale=640:360", "-profile:v", "high", "-pix_fmt", "yuv420p", "-c:a", "aac"];
  const input = await source("fit.mp4", ...picture(20), ...sound(48_000, 20), ...fit);
  const { plan: stored } = await planned(input);
  const plan = parsePlan(JSON.parse(JSON.stringify(stored)));
  expect(plan.audio).toMatchObject([{ isCopied: true }]);
  const index = await indexOfFile(input);
  const audio = index?.tracks.find(({ kind }) => kind === "audio");
  if (!audio) throw new Error("The source has no index of its audio");
  const bytes = readFileSync(input);
  for (const [offset, length] of rangesOf(audio, 700, 720)) bytes.fill(0xff, offset, offset + length);
  writeFileSync(input, bytes);
  const outDir = newFolder();
  const seen: string[] = [];
  const onWritten = async (rows: WrittenRendition[]) => {
    for (const { name, segments } of rows) for (const at of segments.keys()) seen.push(`${name}/${segmentName(at)}`);
    expect(seen.every((file) => readFileSync(join(outDir, file)).length > 0)).toBe(true);
  };
  const run = { cwd: folder, reads: [input], writes: [outDir] };
  await expect(encodeAudio({ input, plan, spec, binaries, run, outDir, onWritten })).rejects.toMatchObject({
    code: expect.stringMatching(/^(input_invalid|encode_failed)$/),
  });
  expect(seen).toEqual([0, 1, 2, 3, 4].map((number) => `audio/${segmentName(number)}`));
});

test("an end that does not exist is not exactly a part", async () => {
  const input = await source("short.mp4", ...picture(), ...sound(32_000), "-c:a", "aac");
  const { plan: stored } = await planned(input);
  const plan = parsePlan(JSON.parse(JSON.stringify(stored)));
  const outDir = newFolder();
  const run = { cwd: folder, reads: [input], writes: [outDir] };
  for (const [from, to] of [
    [12, 18],
    [40, null],
    [3, 8],
  ] as const)
    await expect(
      encodeAudioPart(
        { input, plan, spec, binaries, run, outDir },
        { range: rangeOfAudio({ number: 1, from, to }), step: 2, workDir: join(folder, "work") },
      ),
    ).rejects.toThrow("cannot be encoded in parts");
});

describe("audio is cut", () => {
  let plain: string;
  beforeAll(async () => {
    plain = await source("plain.mov", ...picture(10), ...sound(32_000, 10), "-c:a", "aac");
  });
  const stepOf = async (input: string, of?: EncodingSpec) => (await planned(input, of)).early?.audio_step ?? null;
  const audio = (fields: Partial<EncodingSpec["audio"]>): EncodingSpec => ({
    ...spec,
    audio: { ...spec.audio, ...fields },
  });

  test("where a packet begins exactly at a segment: at 44.1 kHz at every 64th", async () => {
    expect(await stepOf(plain)).toBe(2);
    expect(await stepOf(plain, audio({ sample_rate: 44_100 }))).toBe(64);
  });

  test("not with a measured loudness, without an index, with gaps, or when one track is shorter", async () => {
    expect(await stepOf(plain, audio({ loudness_lufs: -23 }))).toBeNull();
    const cases = [
      ["plain.mkv", "-i", plain, "-c", "copy"],
      ["gap.mp4", "-i", plain, "-c:v", "copy", "-af", "aselect='not(between(t,4,6))'", "-c:a", "aac"],
      ["shorter.mp4", "-i", plain, "-t", "3", "-i", plain, "-map", "0", "-map", "1:a", "-c", "copy"],
    ];
    for (const [name = "", ...args] of cases) {
      const path = join(folder, name);
      await ffmpeg(...args, path);
      expect(await stepOf(path), name).toBeNull();
    }
  });
});
