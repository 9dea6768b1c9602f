import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readInit } from "#lib/isobmff";
import { readDefaults, readSamples, writeSegment } from "#media/clip/fragments.ts";
import { probe } from "#media/probe.ts";
import { writeSpeech } from "#media/speech-audio.ts";
import { rows } from "#test/support/amount.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries, ffmpeg } from "#test/support/media/sources.ts";
import type { JobContext } from "#worker/context.ts";
import { type Range, type SpeechContract, speechOf } from "#worker/speech-media.ts";
import type { Workspace } from "#worker/transcode-job.ts";

const RATE = 16_000;
/** Each second has a frequency of its own. */
const STEPS = ["-f", "lavfi", "-i", "aevalsrc='0.5*sin(2*PI*(200+37*floor(t))*t)':d=40:s=48000"];

/** By how much the samples of a part differ, but for its ends: those of a resampled stream do. */
function differenceOf(whole: Int16Array, samples: Int16Array, fromMs: number): number {
  const from = RATE / 10;
  const middle = samples.subarray(from, samples.length - from);
  const offset = (fromMs / 1000) * RATE + from;
  const sum = middle.reduce((all, sample, index) => all + Math.abs(sample - (whole[offset + index] as number)), 0);
  return sum / middle.length;
}
const samplesIn = (wavPath: string): Int16Array => {
  const wav = readFileSync(wavPath);
  return new Int16Array(wav.buffer.slice(wav.byteOffset + 44));
};

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
    const seconds = await writeSpeech({ ...options, ...(range && { range: { ...range, startSeconds: 0 } }) });
    return { seconds, samples: samplesIn(wavPath) };
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
    expect(differenceOf(whole.samples, samples, fromMs)).toBeLessThan(30);
  }
});

/** Media with the clock of what they were cut from, as a clip and a trim have. */
async function mediaFrom(folder: string, startSeconds: number, languages: readonly string[]): Promise<void> {
  const entries: string[] = [];
  for (const [index, language] of languages.entries()) {
    const name = `audio${index}`;
    const own = join(folder, name);
    mkdirSync(own);
    const dash = ["-c:a", "aac", "-b:a", "96k", "-f", "dash", "-seg_duration", "4", "-init_seg_name", "init.mp4"];
    await ffmpeg(...STEPS, ...dash, "-media_seg_name", "s$Number%02d$.m4s", join(own, "x.mpd"));
    const init = readFileSync(join(own, "init.mp4"));
    const { timescale } = readInit(init);
    const defaults = readDefaults(init);
    const ticks = startSeconds * timescale;
    const lines = ["#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-TARGETDURATION:5", '#EXT-X-MAP:URI="init.mp4"'];
    const segments = readdirSync(own).filter((each) => each.endsWith(".m4s"));
    for (const [sequence, file] of segments.entries()) {
      const samples = readSamples(readFileSync(join(own, file)), defaults).map((one) => ({
        ...{ ...one, dts: one.dts + ticks, cts: one.cts + ticks },
      }));
      const start = samples[0]?.cts ?? 0;
      const options = { trackId: defaults.trackId, timescale, sequence: sequence + 1, start };
      writeFileSync(join(own, file), writeSegment(samples, options));
      const seconds = samples.reduce((sum, { duration }) => sum + duration, 0) / timescale;
      lines.push(`#EXTINF:${seconds.toFixed(3)},`, file);
    }
    writeFileSync(join(own, "playlist.m3u8"), [...lines, "#EXT-X-ENDLIST", ""].join("\n"));
    entries.push(
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${language}",LANGUAGE="${language}",URI="${name}/playlist.m3u8"`,
    );
  }
  const variant = ['#EXT-X-STREAM-INF:BANDWIDTH=96000,CODECS="mp4a.40.2",AUDIO="a"', "video/playlist.m3u8"];
  writeFileSync(join(folder, "master.m3u8"), ["#EXTM3U", ...entries, ...variant, ""].join("\n"));
}

type Speech = Partial<SpeechContract["speech"]>;
/** As a worker reads it from a shared disk. */
async function readSpeech(folder: string, speech: Speech, range?: Range) {
  const part = { asset_id: 1, manifest_path: "master.m3u8", prefix: "x/", local_path: folder, shared: null };
  const job = { join: { parts: [part] }, speech: { language: null, path: "x.vtt", ...speech } };
  const context = { binaries, scratch: { pidDir: emptyFolder() }, memoryBytes: undefined };
  const heartbeat = { signal: new AbortController().signal, report() {}, move() {} };
  const workspace = { heartbeat, work: emptyFolder() };
  const [contract, all, room] = [job, context, workspace] as unknown as [SpeechContract, JobContext, Workspace];
  const { wavPath, ...read } = await speechOf(contract, all, room, range);
  return { ...read, samples: samplesIn(wavPath) };
}

test.each(rows([600, 30], 1))("parts of media that begin at %i s have the times of all of it", async (startSeconds) => {
  const folder = emptyFolder();
  await mediaFrom(folder, startSeconds, ["fr", "en"]);
  const whole = await readSpeech(folder, {});
  for (const [fromMs, toMs] of [
    [14_000, 22_250],
    [0, 9000],
    [33_500, 45_000],
  ] as const) {
    const { samples, durationSeconds } = await readSpeech(folder, {}, { fromMs, toMs });
    expect(durationSeconds).toBeCloseTo((Math.min(toMs, whole.durationSeconds * 1000) - fromMs) / 1000, 1);
    expect(differenceOf(whole.samples, samples, fromMs)).toBeLessThan(30);
  }
  // The language that was detected in other parts selects no other rendition than theirs.
  const range = { fromMs: 0, toMs: 4000 };
  const step = "part" as const;
  expect((await readSpeech(folder, { step, language: "en", requested_language: null }, range)).language).toBe("fr");
  expect((await readSpeech(folder, { step, language: "en", requested_language: "en" }, range)).language).toBe("en");
  // As servers of earlier versions have it.
  expect((await readSpeech(folder, { step, language: "en" }, range)).language).toBe("en");
});
