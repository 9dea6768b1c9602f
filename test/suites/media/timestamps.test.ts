import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { planEncode } from "#media/plan.ts";
import type { AudioTrack } from "#media/probe.ts";
import { writeSpeech } from "#media/speech-audio.ts";
import { withoutJumps } from "#media/timeline/repair.ts";
import { probeSource } from "#media/timeline.ts";
import { warningsOf } from "#media/tracks.ts";
import { sample } from "#test/support/amount.ts";
import { planned } from "#test/support/media/parallel/parts.ts";
import { binaries, fast, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

/** Sources whose timestamps restart or jump: all of them plays, and each beep is heard with its flash. */

vi.setConfig({ maxConcurrency: 2 });
const folder = temporaryFolder("timestamps");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A flash and a beep at each second. */
const flashing = (seconds: number) => [
  ...["-f", "lavfi", "-i", `testsrc2=s=96x54:r=25:d=${seconds},drawbox=t=fill:c=black`],
  ...["-f", "lavfi", "-i", `aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.1)':d=${seconds}:s=48000`],
  ...["-vf", "drawbox=t=fill:c=white:enable='lt(mod(t,1),0.12)'", "-map", "0", "-map", "1"],
];
const h264 = [...fast, "-pix_fmt", "yuv420p", "-g", "25", "-c:a", "aac"];
const reordered = [
  "-c:v",
  "libx264",
  "-preset",
  "veryfast",
  "-pix_fmt",
  "yuv420p",
  "-g",
  "25",
  "-bf",
  "3",
  "-c:a",
  "aac",
];
const mpeg2 = ["-c:v", "mpeg2video", "-g", "12", "-bf", "2", "-c:a", "mp2"];

type Row = {
  name: string;
  file: string;
  codecs: string[];
  /** Lengths of recordings that follow each other in the file, and when each begins by its timestamps. */
  pieces: [seconds: number, from: number][];
  /** The seconds of the output that have a flash. */
  flashes: number[];
  /** How often times jump. */
  jumps: number;
};

const count = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);
const HOURS = 7200;

const ROWS: Row[] = [
  ...(["ts", "mpg", "flv"] as const).flatMap((container): Row[] => [
    {
      name: `times that restart, in ${container}`,
      file: `restart.${container}`,
      codecs: container === "mpg" ? mpeg2 : h264,
      pieces: [
        [4, 0],
        [4, 0],
      ],
      flashes: count(0, 8),
      jumps: 1,
    },
    {
      name: `three recordings, in ${container}`,
      file: `three.${container}`,
      codecs: container === "mpg" ? mpeg2 : h264,
      pieces: [
        [3, 0],
        [2, 0],
        [3, 0],
      ],
      flashes: count(0, 8),
      jumps: 2,
    },
    {
      name: `times that jump by hours, in ${container}`,
      file: `hours.${container}`,
      codecs: container === "mpg" ? mpeg2 : h264,
      pieces: [
        [4, 0],
        [4, HOURS],
      ],
      flashes: count(0, 8),
      jumps: 1,
    },
  ]),
  ...(["ts", "flv"] as const).map(
    (container): Row => ({
      name: `frames out of order that restart, in ${container}`,
      file: `reordered.${container}`,
      codecs: reordered,
      pieces: [
        [4, 0],
        [4, 0],
      ],
      flashes: count(0, 8),
      jumps: 1,
    }),
  ),
  {
    name: "times that overlap, in ts",
    file: "overlap.ts",
    codecs: h264,
    pieces: [
      [4, 0],
      [4, 2],
    ],
    flashes: count(0, 8),
    jumps: 1,
  },
  {
    name: "a pause of 3 s, in ts",
    file: "pause.ts",
    codecs: h264,
    pieces: [
      [4, 0],
      [4, 7],
    ],
    flashes: [...count(0, 4), ...count(7, 11)],
    jumps: 0,
  },
  // 2^33 / 90000 = 95443.7 s.
  { name: "a clock that wraps", file: "wrap.ts", codecs: h264, pieces: [[8, 95_439]], flashes: count(0, 8), jumps: 0 },
];

/** Before the first tag of FLV (Annex E.2): its header, and the size of no tag. */
const FLV_HEAD_BYTES = 13;

async function made({ file, codecs, pieces }: Row): Promise<string> {
  const container = file.split(".")[1] as string;
  const bytes: Buffer[] = [];
  for (const [at, [seconds, from]] of pieces.entries()) {
    const path = join(folder, `${at}-${file}`);
    await ffmpeg(...flashing(seconds), ...codecs, ...(from ? ["-output_ts_offset", String(from)] : []), path);
    bytes.push(readFileSync(path).subarray(container === "flv" && at > 0 ? FLV_HEAD_BYTES : 0));
  }
  const input = join(folder, file);
  writeFileSync(input, Buffer.concat(bytes));
  return input;
}

/** When values become larger than a threshold, in seconds. */
const onsets = (values: ArrayLike<number>, threshold: number, step: number): number[] =>
  Array.from(values).flatMap((value, at) =>
    value > threshold && !((values[at - 1] ?? 0) > threshold) ? [at * step] : [],
  );

async function flashesOf(path: string): Promise<number[]> {
  const pixels = await ffmpeg("-i", path, "-map", "0:v", "-vf", "scale=1:1,format=gray", "-f", "rawvideo", "-");
  return onsets(pixels, 100, 1 / 25);
}

async function beepsOf(path: string): Promise<number[]> {
  const pcm = await ffmpeg("-i", path, "-map", "0:a", "-ac", "1", "-ar", "8000", "-f", "s16le", "-");
  const samples = new Int16Array(pcm.buffer, pcm.byteOffset, pcm.length >> 1);
  const step = 80;
  const peaks = Array.from({ length: Math.floor(samples.length / step) }, (_, at) =>
    samples.subarray(at * step, (at + 1) * step).reduce((most, sample) => Math.max(most, Math.abs(sample)), 0),
  );
  return onsets(peaks, 2000, step / 8000);
}

describe.concurrent("all of a source plays in sync, whatever its timestamps", () => {
  test.each(sample(ROWS, 4).map((row) => [row.name, row] as const))("%s", async (_, row) => {
    const input = await made(row);
    const probe = await probeSource(input, binaries);
    const seconds = (row.flashes.at(-1) ?? 0) + 1;
    expect(Math.abs((probe.durationSeconds ?? 0) - seconds)).toBeLessThan(0.25);
    const warnings = warningsOf(probe);
    expect(warnings.map(({ code }) => code)).toEqual(row.jumps > 0 ? ["timestamps_repaired"] : []);
    const [, times, at] = /jump (once|\d times, first) at ([\d.]+) s\./.exec(warnings[0]?.message ?? "") ?? [];
    if (row.jumps > 0) {
      expect(times).toBe(row.jumps === 1 ? "once" : `${row.jumps} times, first`);
      expect(Math.abs(Number(at) - (row.pieces[0]?.[0] ?? 0))).toBeLessThan(0.25);
    }
    const dir = join(folder, `${row.file}-out`);
    const cwd = mkdtempSync(join(folder, "repaired-"));
    const source = await withoutJumps({ input, probe }, { binaries, run: { cwd, reads: [input], writes: [] } });
    const result = await encode({ ...source, outDir: dir, spec, binaries, scratchDir: folder });
    expect(Math.abs(result.durationSeconds - seconds)).toBeLessThan(0.25);
    const flashes = await flashesOf(join(dir, result.renditions[0]?.playlist_path ?? ""));
    const beeps = await beepsOf(join(dir, result.audioRenditions[0]?.playlist_path ?? ""));
    expect(flashes.map((each) => Math.floor(each + 0.1))).toEqual(row.flashes);
    expect(beeps).toHaveLength(flashes.length);
    for (const [each, beep] of beeps.entries()) expect(Math.abs(beep - (flashes[each] as number))).toBeLessThan(0.075);
    // Speech is recognized with the same times.
    const wavPath = join(cwd, "speech.wav");
    const track = source.probe.audio[0] as AudioTrack;
    const whole = planEncode(source.probe, spec);
    await writeSpeech({ ffmpeg: binaries.ffmpeg, input: source.input, cwd, track, whole, wavPath });
    const spoken = await beepsOf(wavPath);
    expect(spoken).toHaveLength(beeps.length);
    for (const [each, beep] of spoken.entries()) expect(Math.abs(beep - (flashes[each] as number))).toBeLessThan(0.075);
    // A part of such a source would be read from the wrong position.
    const { uncuttable } = await planned(input, 1);
    if (row.jumps > 0) expect(uncuttable).toBe("inexact");
  });
});
