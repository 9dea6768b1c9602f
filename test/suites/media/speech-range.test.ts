import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { probe } from "#media/probe.ts";
import { writeSpeech } from "#media/speech-audio.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries, ffmpeg } from "#test/support/media/sources.ts";

const RATE = 16_000;
/** Each second has a frequency of its own. */
const STEPS = ["-f", "lavfi", "-i", "aevalsrc='0.5*sin(2*PI*(200+37*floor(t))*t)':d=40:s=48000"];

test("a part of the audio is decoded from its own segments, with the samples of all of it", async () => {
  const folder = emptyFolder();
  const dash = ["-c:a", "aac", "-b:a", "96k", "-f", "dash", "-seg_duration", "4", "-init_seg_name", "init.mp4"];
  await ffmpeg(...STEPS, ...dash, "-media_seg_name", "s$Number%02d$.m4s", join(folder, "x.mpd"));
  const segments = readdirSync(folder).filter((name) => name.endsWith(".m4s"));
  const samplesOf = async (name: string, names: readonly string[], range?: { fromMs: number; toMs: number }) => {
    const input = join(folder, `${name}.mp4`);
    writeFileSync(input, Buffer.concat(["init.mp4", ...names].map((each) => readFileSync(join(folder, each)))));
    const run = { cwd: folder, pidDir: folder };
    const [track] = (await probe(input, binaries, run)).audio;
    if (!track) throw new Error("It has no audio.");
    const wavPath = join(folder, `${name}.wav`);
    const options = { ...run, ffmpeg: binaries.ffmpeg, input, track, wavPath, onMove: () => {} };
    const seconds = await writeSpeech({ ...options, ...(range && { range }) });
    const wav = readFileSync(wavPath);
    return { seconds, samples: new Int16Array(wav.buffer.slice(wav.byteOffset + 44)) };
  };
  const whole = await samplesOf("whole", segments, { fromMs: 0, toMs: 60_000 });
  // The delay of the encoder, which its fragments state or not.
  expect((await samplesOf("all", segments)).seconds).toBeCloseTo(whole.seconds, 1);
  for (const [fromMs, toMs] of [
    [14_000, 22_250],
    [0, 9000],
    [33_500, 45_000],
  ] as const) {
    const [first, last] = [Math.floor(fromMs / 4000) - 1, Math.ceil(toMs / 4000) + 1];
    const own = segments.filter((_, index) => index >= first && index < last);
    const { seconds, samples } = await samplesOf(`from-${fromMs}`, own, { fromMs, toMs });
    expect(seconds).toBeCloseTo((Math.min(toMs, whole.seconds * 1000) - fromMs) / 1000, 1);
    const offset = (fromMs / 1000) * RATE;
    // The ends of a resampled stream differ.
    const middle = samples.subarray(RATE / 10, samples.length - RATE / 10);
    const differences = middle.reduce(
      (sum, sample, index) => sum + Math.abs(sample - (whole.samples[offset + RATE / 10 + index] as number)),
      0,
    );
    expect(differences / middle.length).toBeLessThan(30);
  }
});
