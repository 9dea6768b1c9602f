import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type OpenAiOptions, openai } from "#platform/outbound/transcribe/openai.ts";
import { confidenceOf, vttOfSpeech } from "#platform/outbound/transcribe/speech-text.ts";
import { headerOf } from "#platform/outbound/transcribe/wav.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { KEY, type Mood, transcriptionService, vttOf } from "#test/support/transcription-service.ts";

const RATE = 16_000;
/** Loud, except for the half seconds that begin at `pauses`. */
async function wavFile(seconds: number, pauses: number[] = []): Promise<string> {
  const samples = new Int16Array(seconds * RATE);
  for (let index = 0; index < samples.length; index++) {
    const time = index / RATE;
    const isQuiet = pauses.some((pause) => time >= pause && time < pause + 0.5);
    samples[index] = Math.round((isQuiet ? 20 : 12_000) * Math.sin(index / 10));
  }
  const path = join(emptyFolder(), "sound.wav");
  await writeFile(path, Buffer.concat([headerOf(samples.byteLength), Buffer.from(samples.buffer)]));
  return path;
}

type Changes = Partial<OpenAiOptions> & { language?: string | null; signal?: AbortSignal; wavPath?: string };

async function recognized(url: string, { language = "en-US", signal, wavPath, ...options }: Changes = {}) {
  const path = wavPath ?? (await wavFile(3));
  const transcriber = openai({ base: url, key: KEY, model: "whisper-1", timeoutMs: 60_000, ...options });
  const sound = { wavPath: path, durationSeconds: 3, cwd: "/", language };
  return transcriber.transcribe({ ...sound, signal: signal ?? new AbortController().signal });
}

const transcribe = async (url: string, changes?: Changes) => vttOfSpeech(await recognized(url, changes));

describe("a transcription server", () => {
  test("gets the audio as documented, and its WebVTT is the caption", async () => {
    const { url, heard } = await transcriptionService();
    expect(await transcribe(url)).toBe(vttOf("piece 1"));
    expect(heard).toMatchObject([
      {
        path: "/v1/audio/transcriptions",
        seconds: 3,
        fields: { model: "whisper-1", language: "en", response_format: "verbose_json" },
      },
    ]);
  });

  test.each([
    ["", "/v1/audio/transcriptions"],
    ["/v1/", "/v1/audio/transcriptions"],
    ["/v1/audio/transcriptions", "/v1/audio/transcriptions"],
    ["/inference", "/inference"],
  ])("at %s is called at %s", async (given, path) => {
    const { url, heard } = await transcriptionService();
    await transcribe(url + given);
    expect(heard.map((one) => one.path)).toEqual([path]);
  });

  test("needs no key when it is self-hosted", async () => {
    const { url, heard } = await transcriptionService();
    await transcribe(`${url}/inference`, { key: undefined });
    expect(heard[0]?.headers.authorization).toBeUndefined();
  });

  const SRT = "1\n00:00:00,500 --> 00:00:01,000\nHello & you\n";
  const json = (value: unknown) => JSON.stringify(value);
  const WHISPER =
    "WEBVTT\n\n00:00.000 --> 00:00.000\n uh\n\n00:00.500 --> 00:01.000\n Hello\n\n00:01.000 --> 00:09.000\n you\n\n";
  test.each([
    ["SubRip", SRT, vttOf("Hello &amp; you")],
    [
      "verbose_json",
      json({
        text: "Hi <b>",
        segments: [
          { id: 0, start: 0.5, end: 1, text: " Hi <b>" },
          { start: 1, end: 2, text: " " },
        ],
      }),
      vttOf("Hi &lt;b&gt;"),
    ],
    [
      "WebVTT with cues of no length, and one that continues after the end",
      WHISPER,
      "WEBVTT\n\n00:00:00.500 --> 00:00:03.000\nHello you\n",
    ],
  ])("may answer %s", async (_, answer, caption) => {
    const { url, moods } = await transcriptionService();
    moods.push((response) => response.end(answer));
    expect(await transcribe(url)).toBe(caption);
  });

  const WORDS = json({
    language: "english",
    segments: [
      { start: 0.5, end: 1.5, text: " Hello, you.", avg_logprob: -0.105 },
      { start: 2, end: 2.2, text: " Thanks for watching", avg_logprob: -1.5, no_speech_prob: 0.9 },
      { start: 1.5, end: 3, text: " I am here!" },
    ],
    words: [
      { word: "Hello", start: 0.62, end: 0.9 },
      { word: "you", start: 1.1, end: 1.4 },
      { word: "Thanks", start: 2, end: 2.1 },
      { word: "I", start: 2.3, end: 2.4 },
      { word: "am", start: 2.4, end: 2.5 },
      { word: "here", start: 2.5, end: 2.9 },
    ],
  });
  test("may answer words with their times and the language, and is not believed where it hears silence", async () => {
    const { url, moods, heard } = await transcriptionService();
    moods.push((response) => response.end(WORDS));
    const speech = await recognized(url, { language: null });
    expect(heard[0]?.fields).not.toHaveProperty("language");
    expect([speech.language, confidenceOf(speech)]).toEqual(["en", 0.9]);
    expect(await vttOfSpeech(speech)).toBe(
      "WEBVTT\n\n00:00:00.620 --> 00:00:01.620\nHello, you.\n\n00:00:02.300 --> 00:00:03.300\nI am here!\n",
    );
  });

  test.each<[string, number, (string | undefined)[]]>([
    ["the times of words", 1, ["verbose_json", "verbose_json"]],
    ["JSON", 2, ["verbose_json", "verbose_json", "vtt"]],
  ])("that refuses %s is asked for less", async (_, refusals, formats) => {
    const { url, moods, heard } = await transcriptionService();
    for (let index = 0; index < refusals; index++) moods.push((response) => response.writeHead(400).end("no"));
    expect(await transcribe(url)).toBe(vttOf(`piece ${refusals + 1}`));
    expect(heard.map(({ fields }) => fields.response_format)).toEqual(formats);
    expect(heard.map(({ fields }) => "timestamp_granularities[]" in fields)).toEqual(formats.map((_, at) => at === 0));
  });

  test("of whisper.cpp is asked to detect the language", async () => {
    const { url, heard } = await transcriptionService();
    await recognized(`${url}/inference`, { key: undefined, language: null });
    expect(heard[0]?.fields.language).toBe("auto");
  });

  const say =
    (status: number, headers: Record<string, string> = {}): Mood =>
    (response) =>
      response.writeHead(status, headers).end("no");
  const soon = { "retry-after": "0" };
  const hangUp: Mood = (response) => response.destroy();
  test.each<[string, Mood[]]>([
    ["429 with Retry-After", [say(429, soon), say(429, soon)]],
    ["500s", [say(500, soon), say(503, soon), say(502, soon)]],
    ["hung up on", [hangUp]],
  ])("that is busy (%s) is asked again", async (_, odd) => {
    const { url, heard, moods } = await transcriptionService();
    moods.push(...odd);
    expect(await transcribe(url)).toBe(vttOf(`piece ${odd.length + 1}`));
    expect(heard).toHaveLength(odd.length + 1);
  });

  const endless: Mood = (response) => {
    const more = () => {
      while (!response.destroyed && response.write("WEBVTT\n".repeat(10_000)));
    };
    response.on("drain", more);
    more();
  };
  const isIt: [string, Mood[], RegExp, number][] = [
    ["does not answer", [() => {}], /did not respond within 2 s/, 1],
    ["does not end its answer", [(response) => response.write("WEBVTT")], /did not respond within 2 s/, 1],
    ["answers without end", [endless], /too large/, 1],
    ["asks for too much patience", [say(429, { "retry-after": "3600" })], /responded with status 429/, 1],
    ["fails four times", Array(4).fill(say(500, soon)), /responded with status 500/, 4],
    ["refuses the key", [say(401)], /responded with status 401/, 1],
    ["sends elsewhere", [say(307, { location: "http://127.0.0.1:9/" })], /responded with status 307/, 1],
    ["hears nothing", [(response) => response.end("WEBVTT\n\n")], /No speech was recognized/, 1],
    ["knows no times", [(response) => response.end('{"text": "Hello"}')], /no times/, 1],
    ["answers a page", [(response) => response.end("<html>")], /neither WebVTT nor SubRip/, 1],
    ["answers no text", [(response) => response.end(Buffer.from([0xff, 0xfe, 0]))], /not UTF-8 text/, 1],
    [
      "answers a torn file",
      [(response) => response.end("WEBVTT\n\n00:01 -> x\nHello\n")],
      /The transcription is invalid: line 3/,
      1,
    ],
  ];
  test.each(isIt)("that %s fails, with a message without the key", async (_, odd, words, times) => {
    const { url, heard, moods } = await transcriptionService();
    moods.push(...odd);
    const isSlow = /did not respond/.test(words.source);
    const failure = await transcribe(url, isSlow ? { timeoutMs: 2000 } : {}).catch((error) => error);
    expect(failure).toMatchObject({ name: "TranscriptionFailed", message: expect.stringMatching(words) });
    expect(`${failure.message}${failure.detail}${failure.stack}`).not.toContain(KEY);
    expect(heard).toHaveLength(times);
  });

  test("that is unreachable fails", async () => {
    const failure = await transcribe("http://127.0.0.1:9").catch((error) => error);
    expect(failure.message).toBe("The transcription service could not be reached (ECONNREFUSED).");
  });

  test("is disconnected when the job is aborted", async () => {
    const { url, moods } = await transcriptionService();
    const gone = new AbortController();
    const closed = Promise.withResolvers<void>();
    moods.push((response) => {
      response.on("close", () => closed.resolve());
      gone.abort(new Error("given up"));
    });
    await expect(transcribe(url, { signal: gone.signal })).rejects.toThrow("given up");
    await closed.promise;
  });
});

test("speech of more than a subtitle may have is not cut", async () => {
  const one = { text: "word ".repeat(100), confidence: null, words: [] };
  const utterances = Array.from({ length: 5000 }, (_, at) => ({ ...one, startMs: at * 9000, endMs: at * 9000 + 8000 }));
  await expect(vttOfSpeech({ utterances })).rejects.toThrow("The captions have over 2000000 bytes.");
});

describe("long audio", () => {
  test("is cut where it is quiet, and its captions are joined", async () => {
    const { url, heard } = await transcriptionService();
    const wavPath = await wavFile(15, [1, 4.5, 9, 9.4]);
    const limits = { mostSeconds: 6, searchSeconds: 2 };
    const caption = await transcribe(url, { wavPath, limits });
    expect(heard.map(({ seconds }) => seconds)).toEqual([4.75, expect.closeTo(4.6, 0), expect.any(Number)]);
    expect(heard.every(({ seconds }) => seconds <= 6)).toBe(true);
    expect(heard.reduce((sum, { seconds }) => sum + seconds, 0)).toBe(15);
    // The first and last samples of each section are part of a pause.
    for (const { samples } of heard.slice(0, -1)) expect(Math.abs(samples.at(-1) as number)).toBeLessThanOrEqual(20);
    const starts = [...caption.matchAll(/^00:00:(\S+) --> .*\n(.*)$/gm)].map(([, time, text]) => [Number(time), text]);
    const [one, two] = heard.map(({ seconds }) => seconds) as [number, number];
    expect(starts).toEqual([
      [0.5, "piece 1"],
      [one + 0.5, "piece 2"],
      [expect.closeTo(one + two + 0.5, 3), "piece 3"],
    ]);
  });

  test("of 25 minutes is sent in three sections that the service accepts", async () => {
    const { url, heard } = await transcriptionService();
    const wavPath = join(emptyFolder(), "long.wav");
    const bytes = 25 * 60 * 2 * RATE;
    await writeFile(wavPath, headerOf(bytes));
    await using file = await open(wavPath, "r+");
    await file.truncate(44 + bytes);
    await transcribe(url, { wavPath });
    expect(heard).toHaveLength(3);
    expect(heard.reduce((sum, { seconds }) => sum + seconds, 0)).toBe(1500);
    expect(Math.max(...heard.map(({ seconds }) => seconds))).toBeLessThanOrEqual(600);
  });
});
