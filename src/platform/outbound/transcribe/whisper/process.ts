import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Utterance } from "../speech.ts";
import { BYTES_PER_SECOND, type Samples, samplesOf } from "../wav.ts";
import { activityOf, levelsOf, stretchesOf } from "./activity.ts";
import { joined } from "./join.ts";
import { languageTag } from "./languages.ts";
import { type Libraries, loadLibrary, type WhisperContext } from "./library.ts";
import { type Part, partsOf } from "./parts.ts";
import { audibleWords, withoutInvented } from "./repeats.ts";
import { LoopFilter, utterancesOf } from "./utterances.ts";
import { type TimedWord, wordsOf } from "./words.ts";

/** What the process is started with, as JSON in its only argument. */
export type RecognitionJob = Libraries & {
  model: string;
  wav: string;
  /** Receives a line of JSON for each utterance, and a last one with the language. */
  out: string;
  /** The library's name of the language; null: detect it. */
  language: string | null;
  threads: number;
};
export type RecognitionLine = { type: "utterance"; utterance: Utterance } | { type: "end"; language: string | null };

/** How it fails; other statuses and signals are faults of the library. */
export const EXIT = { library: 10, model: 11, recognition: 12 } as const;

/** The process that recognizes speech: it runs code that may fail in any way, on a model that anybody may have made. */
export async function recognitionProcess(job: RecognitionJob): Promise<void> {
  // The library does not settle the promise of a recognition that fails: then nothing is left to wait for.
  process.on("beforeExit", () => quit(EXIT.recognition, "The library reported no result."));
  let context: WhisperContext;
  try {
    const { WhisperContext } = loadLibrary(job);
    try {
      context = new WhisperContext({ filePath: job.model, useGpu: false });
    } catch (error) {
      return quit(EXIT.model, error);
    }
  } catch (error) {
    return quit(EXIT.library, error);
  }
  await using file = await open(job.wav);
  const samples = await samplesOf(file);
  const levels = await levelsOf(file, samples);
  const active = activityOf(levels);
  const parts = partsOf(stretchesOf(active), levels);

  const out = createWriteStream(job.out, { flags: "wx" });
  const write = (line: RecognitionLine) => void out.write(`${JSON.stringify(line)}\n`);
  const filter = new LoopFilter((utterance) => write({ type: "utterance", utterance }));
  const { recognized, language } = await detect();
  let words: TimedWord[] = [];
  for (const [index, part] of parts.entries()) {
    const { words: heard } = recognized.get(index) ?? (await recognize(part, language.forced ?? "auto"));
    recognized.delete(index);
    const previous = parts[index - 1];
    // Only where the parts touch; a long silence is between the others.
    words = previous?.endMs === part.startMs ? joined(words, heard, part.startMs) : [...words, ...heard];
    const next = parts[index + 1];
    // What the next part can still change: the last utterance and everything near the cut.
    const utterances = utterancesOf(words);
    const kept = next ? utterances.findIndex((each) => each.endMs > part.endMs - 5000) : -1;
    const settled = kept < 0 ? utterances : utterances.slice(0, kept);
    for (const utterance of settled) filter.push(utterance);
    words = kept < 0 ? [] : words.slice(settled.reduce((sum, each) => sum + each.words.length, 0));
    report(part.endMs);
    if (out.writableNeedDrain) await once(out, "drain");
  }
  filter.flush();
  write({ type: "end", language: parts.length === 0 || !language.detected ? null : languageTag(language.detected) });
  out.end();
  await once(out, "close");
  process.exit(0);

  async function recognize(part: Part, language: string) {
    const audio = await read(file, samples, part);
    const result = await context.transcribeData(audio, {
      language,
      maxThreads: job.threads,
      // A segment for each token, with its times.
      tokenTimestamps: true,
      maxLen: 1,
    }).promise;
    const words = wordsOf(result.segments, result.result, part.fromMs).map((word) => ({
      ...word,
      endMs: Math.min(word.endMs, part.toMs),
      startMs: Math.min(word.startMs, part.toMs),
    }));
    const said = audibleWords(withoutInvented(words, part.toMs - part.fromMs), active);
    return { words: said, language: result.language ?? null };
  }

  /**
   * In the first part, one in the middle and the last, because an introduction may be in another language. What is
   * recognized there is used.
   */
  async function detect() {
    const recognized = new Map<number, Awaited<ReturnType<typeof recognize>>>();
    if (job.language !== null) return { recognized, language: { forced: job.language, detected: job.language } };
    const last = parts.length - 1;
    const samples = [...new Set([0, Math.floor(last / 2), last])].filter((index) => parts[index] !== undefined);
    for (const index of samples) recognized.set(index, await recognize(parts[index] as Part, "auto"));
    const detected = [...recognized.values()].filter((each) => each.words.length > 0);
    const counts = new Map<string, number>();
    for (const { language, words } of detected)
      if (language !== null) counts.set(language, (counts.get(language) ?? 0) + words.length);
    const [most] = [...counts].sort(([, one], [, other]) => other - one);
    // Where samples differ, each part is recognized in its own language.
    return {
      recognized,
      language: { forced: counts.size === 1 ? (most?.[0] ?? null) : null, detected: most?.[0] ?? null },
    };
  }
}

/** Progress as ffmpeg reports it: the position in the audio. */
const report = (endMs: number) => process.stdout.write(`out_time_us=${Math.round(endMs * 1000)}\n`);

async function read(file: FileHandle, { from, to }: Samples, part: Part): Promise<ArrayBuffer> {
  const at = (ms: number) => Math.min(to, from + Math.round((ms * BYTES_PER_SECOND) / 2000) * 2);
  const buffer = new ArrayBuffer(at(part.toMs) - at(part.fromMs));
  await file.read(new Uint8Array(buffer), 0, buffer.byteLength, at(part.fromMs));
  return buffer;
}

function quit(status: number, reason: unknown): void {
  process.stderr.write(`${reason instanceof Error ? reason.message : String(reason)}\n`);
  process.exit(status);
}
