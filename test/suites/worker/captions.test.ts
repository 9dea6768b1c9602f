import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Speech } from "#platform/outbound/transcribe/speech.ts";
import { type SpeechAudio, type Transcriber, TranscriptionFailed } from "#platform/outbound/transcribe/transcriber.ts";
import { rows } from "#test/support/amount.ts";
import { binaries, fast, ffmpeg, picture, sound, temporaryFolder } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { processesWith } from "#test/support/worker/processes.ts";
import { startWorker } from "#worker/loop.ts";
import { ContractServer, PREFIX, WORKER } from "./contract-server.ts";

const folder = temporaryFolder("captions");
const source = join(folder, "source.mp4");
const silent = join(folder, "silent.mp4");
const long = join(folder, "long.m4a");
const bilingual = join(folder, "bilingual.mp4");
const talk = join(folder, "talk.m4a");
/** Its length is not stated. */
const recording = join(folder, "recording.webm");
const SPEECH: Speech = {
  language: "en",
  utterances: [{ text: "Hello", startMs: 500, endMs: 1000, confidence: null, words: [] }],
};
/** What it is as captions. */
const VTT = "WEBVTT\n\n00:00:00.500 --> 00:00:01.500\nHello\n";
let count = 0;

beforeAll(async () => {
  await ffmpeg(...picture("160x90", "25", 3), ...sound(3), ...fast, source);
  await ffmpeg(...picture("160x90", "25", 2), ...fast, silent);
  await ffmpeg(...sound(61.777), long);
  await ffmpeg(...sound(121), "-ac", "1", talk);
  await ffmpeg(...sound(121), "-ac", "1", "-c:a", "libopus", "-f", "webm", "-live", "1", recording);
  // English is a low tone and the default, French a loud high one that begins a second late.
  const tones = ["-f", "lavfi", "-i", "sine=200:d=3,volume=0.1", "-f", "lavfi", "-i", "sine=2000:d=2"];
  const maps = ["-map", "0:v", "-map", "1:a", "-map", "2:a", "-metadata:s:a:0", "language=eng"];
  const late = ["-filter:a:1", "adelay=1000,volume=8", "-metadata:s:a:1", "language=fre"];
  await ffmpeg(...picture("160x90", "25", 3), ...tones, ...maps, ...late, ...fast, bilingual);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Heard = Omit<SpeechAudio, "signal" | "onProgress"> & { wav: Buffer };
/** A speech recognition command that keeps its input. */
function listener(answer: (sound: SpeechAudio) => Promise<Speech> | Speech = () => SPEECH) {
  const heard: Heard[] = [];
  const transcriber: Transcriber = {
    async transcribe(one) {
      const { signal: _, onProgress: __, ...rest } = one;
      heard.push({ ...rest, wav: await readFile(one.wavPath) });
      return answer(one);
    },
  };
  return { heard, transcriber };
}

function work(server: ContractServer, transcriber: Transcriber | null) {
  const controller = new AbortController();
  const scratchDir = join(folder, `scratch-${++count}`);
  const lines: [Record<string, unknown>, string][] = [];
  const say = (fields: Record<string, unknown>, message: string) => lines.push([fields, message]);
  const done = startWorker({
    server: server.base,
    token: () => WORKER,
    workerId: "w1",
    scratchDir,
    binaries,
    signal: controller.signal,
    log: { info: say, warn: say, error: say },
    transcriber,
  });
  done.catch(() => {});
  const stop = async () => {
    controller.abort();
    await done;
    expect(readdirSync(scratchDir)).toEqual([]);
    expect(processesWith(scratchDir)).toEqual([]);
  };
  return { stop, lines };
}

/** Runs the only job to its end, and returns what the server received. */
async function outcome(path: string, transcriber: Transcriber | null, wish: Partial<ContractServer>) {
  await using server = await ContractServer.start(path);
  Object.assign(server, wish);
  const worker = work(server, transcriber);
  await server.until((one) => one.named("complete").length + one.named("fail").length > 0, 100_000);
  await worker.stop();
  const [complete] = server.named("complete");
  const [fail] = server.named("fail");
  const stages = [...new Set(server.named("heartbeat").map(({ body }) => body.stage))];
  return { complete: complete?.body, fail: fail?.body, stored: server.stored, lines: worker.lines, stages };
}

const text = (stored: Map<string, Buffer>, tag: string) => stored.get(`${PREFIX}captions/${tag}.vtt`)?.toString();

test("captions are created from the audio, and uploaded with the results before the job is complete", async () => {
  const { heard, transcriber } = listener();
  const { complete, stored, lines } = await outcome(source, transcriber, { captions: ["en", "de"] });
  expect(complete).toMatchObject({
    subtitle_paths: { en: `${PREFIX}captions/en.vtt`, de: `${PREFIX}captions/de.vtt` },
    caption_errors: {},
  });
  expect([text(stored, "en"), text(stored, "de")]).toEqual([VTT, VTT]);
  expect(heard.map(({ language, durationSeconds }) => [language, Math.round(durationSeconds)])).toEqual([
    ["en", 3],
    ["de", 3],
  ]);
  const wav = heard[0]?.wav as Buffer;
  expect([wav.toString("latin1", 0, 4), wav.readUInt16LE(22), wav.readUInt32LE(24)]).toEqual(["RIFF", 1, 16_000]);
  const line = lines.find(([, message]) => message === "Caption created.");
  expect(line?.[0]).toMatchObject({ job_id: 7, language: "en", sound_seconds: 3, transcribe_ms: expect.any(Number) });
});

test("the times of words are uploaded next to captions whose engine has them for all of the speech", async () => {
  const word = (text: string, startMs: number, endMs: number) => ({ text, startMs, endMs, confidence: null });
  const utterance = { text: "Hello you", startMs: 500, endMs: 1400, confidence: null };
  const words = [word(" Hello", 500, 900), word(" you", 950.4, 1399.6)];
  const speech = ({ language }: SpeechAudio): Speech => ({
    language: "en",
    utterances: [
      { ...utterance, words },
      ...(language === "de" ? [{ text: "And more", startMs: 2000, endMs: 2800, confidence: null, words: [] }] : []),
    ],
  });
  const { stored } = await outcome(source, listener(speech).transcriber, { captions: ["en", "de"] });
  const file = stored.get(`${PREFIX}captions/en.words.json`)?.toString();
  expect(JSON.parse(file ?? "null")).toEqual([
    ["Hello", 500, 900],
    ["you", 950, 1400],
  ]);
  expect([stored.has(`${PREFIX}captions/de.vtt`), stored.has(`${PREFIX}captions/de.words.json`)]).toEqual([
    true,
    false,
  ]);
});

nightly("of any length, such as one that is not a whole number of milliseconds", async () => {
  const { complete } = await outcome(long, listener().transcriber, { captions: ["en"] });
  expect(complete).toMatchObject({ subtitle_paths: { en: `${PREFIX}captions/en.vtt` }, caption_errors: {} });
});

test.each<[string, { file: string; hasTranscriber?: boolean }, "here" | "left"]>(
  rows(
    [
      ["audio of over two minutes", { file: talk }, "left"],
      ["audio of a minute", { file: long }, "here"],
      ["any, on a worker without a transcriber", { file: source, hasTranscriber: false }, "left"],
      ["a recording of over two minutes without a length", { file: recording }, "left"],
      ["short audio", { file: source }, "here"],
    ],
    3,
  ),
)("%s, where captions may be jobs of their own", async (_, { file, hasTranscriber = true }, where) => {
  const { heard, transcriber } = listener();
  const wish = { captions: ["en"], separateCaptions: true };
  const { complete } = await outcome(file, hasTranscriber ? transcriber : null, wish);
  const here = { subtitle_paths: { en: `${PREFIX}captions/en.vtt` }, caption_errors: {} };
  expect(complete).toMatchObject(
    where === "here" ? here : { subtitle_paths: {}, caption_errors: {}, separate_captions: true },
  );
  expect(Object.hasOwn(complete as object, "separate_captions")).toBe(where === "left");
  expect(heard).toHaveLength(where === "here" ? 1 : 0);
});

test("on a shared disk they are written to their place directly", async () => {
  const artifacts = join(folder, "shared", "artifacts");
  const { transcriber } = listener();
  const wish = { captions: ["en"], localPaths: { source, artifacts }, proof: "x" };
  await using server = await ContractServer.start(source);
  Object.assign(server, wish, { interfere: () => undefined });
  const contract = server.contract.bind(server);
  server.contract = () => contract({ capabilities: { local_proof: "x" } });
  const worker = work(server, transcriber);
  await server.until((one) => one.named("complete").length > 0, 100_000);
  await worker.stop();
  expect(server.stored.size).toBe(0);
  expect(readFileSync(join(artifacts, "captions/en.vtt"), "utf8")).toBe(VTT);
});

/** The loudest sample between two seconds. */
function loudness(wav: Buffer, from: number, to: number): number {
  let peak = 0;
  for (let at = 44 + from * 32_000; at < Math.min(wav.length - 1, 44 + to * 32_000); at += 2)
    peak = Math.max(peak, Math.abs(wav.readInt16LE(at)));
  return peak;
}

test("of several audio tracks the one in the language is used, else the default one, in sync with the video", async () => {
  const { heard, transcriber } = listener();
  await outcome(bilingual, transcriber, { captions: ["fr-CA", "en", "de"] });
  const [french, english, german] = heard.map(({ wav }) => wav) as [Buffer, Buffer, Buffer];
  expect(loudness(french, 1.2, 2.8)).toBeGreaterThan(5 * loudness(english, 1.2, 2.8));
  expect(loudness(french, 0, 0.9)).toBeLessThan(loudness(french, 1.2, 2.8) / 50);
  expect(german.equals(english)).toBe(true);
});

/** Two seconds of silence, then a tone of two seconds. */
const tones: Record<string, (path: string) => Promise<void>> = {
  "a source whose times jump by two hours": async (path) => {
    const parts: Buffer[] = [];
    for (const [at, hours] of [0, 2].entries()) {
      const quiet = at === 0 ? ["-af", "volume=0"] : [];
      const part = `${path}-${at}.flv`;
      await ffmpeg(
        ...picture("64x36", "25", 2),
        ...sound(2),
        ...quiet,
        ...fast,
        "-output_ts_offset",
        String(hours * 3600),
        part,
      );
      // Before its first tag a file has a header of 13 bytes.
      parts.push(readFileSync(part).subarray(at * 13));
    }
    writeFileSync(path, Buffer.concat(parts));
  },
  "a transport stream whose audio is late": async (path) => {
    const late = [...picture("64x36", "25", 4), "-itsoffset", "2", ...sound(2), "-map", "0", "-map", "1"];
    await ffmpeg(...late, ...fast, "-f", "mpegts", path);
  },
};
test.each(rows(Object.keys(tones), 1))("of %s they are in sync", async (name) => {
  const path = join(folder, name.replaceAll(" ", "-"));
  await tones[name]?.(path);
  const { heard, transcriber } = listener();
  await outcome(path, transcriber, { captions: ["en"] });
  const { wav } = heard[0] as { wav: Buffer };
  expect(Math.abs((wav.length - 44) / 32_000 - 4)).toBeLessThan(0.2);
  expect(loudness(wav, 0, 1.9)).toBeLessThan(loudness(wav, 2.1, 3.9) / 50);
});

const fails = (message: string) => () => Promise.reject(new TranscriptionFailed(message, "token /srv/secret"));
test.each(
  rows(
    [
      [
        "something else goes wrong",
        source,
        listener(() => Promise.reject(new Error("/srv/secret"))).transcriber,
        "Unexpected worker error.",
      ],
      ["there is no audio", silent, listener().transcriber, "The source has no audio."],
      ["the service fails", source, listener(fails("It answered 503.")).transcriber, "It answered 503."],
      ["nothing is configured", source, null, "Transcription is not configured on the worker."],
    ] as const,
    2,
  ),
)("when %s the job completes with the reason; it fails when they are required", async (_, path, transcriber, en) => {
  const free = await outcome(path, transcriber, { captions: ["en"] });
  expect(free.complete).toMatchObject({ subtitle_paths: {}, caption_errors: { en } });
  expect(text(free.stored, "en")).toBeUndefined();
  expect(JSON.stringify(free.complete)).not.toContain("secret");
  const bound = await outcome(path, transcriber, { captions: ["en"], captionsRequired: true });
  expect(bound.complete).toBeUndefined();
  const retryable = path !== silent;
  expect(bound.fail).toEqual({ code: "caption_failed", message: `en: ${en}`, retryable, log_tail: "" });
});

test("one that takes longer than the encode keeps the job in its own stage", async () => {
  await using server = await ContractServer.start(source);
  server.captions = ["en"];
  server.heartbeatSeconds = 0.05;
  const seen = Promise.withResolvers<void>();
  const worker = work(server, listener(() => seen.promise.then(() => SPEECH)).transcriber);
  await server.until((one) => one.named("heartbeat").some(({ body }) => body.stage === "captioning"), 100_000);
  expect(server.named("complete")).toEqual([]);
  seen.resolve();
  await server.until((one) => one.named("complete").length > 0, 100_000);
  await worker.stop();
  const progress = server.named("heartbeat").map(({ body }) => body.progress as number);
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
});

test("one in progress is aborted when the worker stops, and the job is released", async () => {
  await using server = await ContractServer.start(source);
  server.captions = ["en"];
  const begun = Promise.withResolvers<void>();
  const forever = (sound: SpeechAudio) =>
    new Promise<Speech>((_, reject) => {
      sound.signal.addEventListener("abort", () => reject(sound.signal.reason));
      begun.resolve();
    });
  const worker = work(server, listener(forever).transcriber);
  await begun.promise;
  await worker.stop();
  // A release whose response is late is repeated.
  expect(server.named("release").length).toBeGreaterThan(0);
  expect(server.named("complete")).toEqual([]);
});
