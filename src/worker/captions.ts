import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { abortAfter, setInterval } from "#lib/base";
import type { DecodedTrack } from "#media/audio-decoding.ts";
import { MediaError } from "#media/error.ts";
import type { Binaries } from "#media/ffmpeg.ts";
import type { Probe } from "#media/probe.ts";
import { copyResult, writeResult } from "#media/results.ts";
import { spokenLanguage, writeSpeech } from "#media/speech-audio.ts";
import { isPlainPath, pathBelow } from "#model/object-keys.ts";
import { wordsOf as timesOfWords, vttOfSpeech } from "#platform/outbound/transcribe/speech-text.ts";
import { type Transcriber, TranscriptionFailed } from "#platform/outbound/transcribe/transcriber.ts";
import { PARTS_FROM_MS } from "#protocol/speech.ts";
import type { Completion, WorkerContract } from "#protocol/worker-client.ts";
import type { LeaseClient } from "./lease-client.ts";
import type { Scratch } from "./scratch.ts";

export type Captions = {
  /** The captions in the body of `complete`. */
  reported: Pick<Completion, "subtitle_paths" | "caption_errors" | "separate_captions">;
  /** The local directory of the files, and their paths relative to it. */
  dir: string;
  files: string[];
};

/** A required caption that cannot be produced. */
export class CaptionFailed extends Error {
  readonly retryable: boolean;
  constructor(message: string, retryable: boolean) {
    super(message);
    this.retryable = retryable;
  }
}

type LogInfo = (fields: Record<string, unknown>, message: string) => void;
/** The part of the job's context that captions need. */
type CaptionContext = {
  client: LeaseClient;
  binaries: Binaries;
  scratch: Scratch;
  memoryBytes?: number | undefined;
  transcriber?: Transcriber | null | undefined;
  log: { info: LogInfo; warn: LogInfo };
};

type CaptionOptions = {
  input: string;
  probe: Pick<Probe, "audio"> & Partial<Pick<Probe, "durationSeconds">>;
  /** What is encoded of a source; absent where the input is a rendition. */
  whole?: DecodedTrack["whole"];
  /** A directory for this job. */
  work: string;
  signal: AbortSignal;
  /**
   * 0 to 1. Estimated from the elapsed time, because speech recognition reports no progress, and a job without progress
   * is considered dead.
   */
  onProgress: (fraction: number) => void;
  /** Called again and again while audio is read. */
  onMove: () => void;
};

const NO_AUDIO = "The source has no audio.";
const MINUTE_MS = 60_000;
const MAX_MS = 12 * 60 * MINUTE_MS;
const TICK_MS = 5000;
const MAX_MESSAGE = 500;
/** The time limit of a recognition: longer than any large model takes on a small machine. */
export const limitMs = (durationSeconds: number) =>
  Math.min(MAX_MS, Math.max(10 * MINUTE_MS, Math.ceil(durationSeconds * 20) * 1000));

/**
 * Produces the captions that the contract requests, one language after the other, concurrently with the encode. Where the server
 * offers it, long audio is left to jobs of their own, which all workers share while viewers already watch, and so is all audio of a
 * worker without a transcriber, because another one may have one. Errors are reported for each language; throws CaptionFailed
 * when captions are required, and the reason of the signal.
 */
export async function createCaptions(
  job: WorkerContract,
  context: CaptionContext,
  options: CaptionOptions,
): Promise<Captions> {
  const dir = join(options.work, "captions-out");
  const captions: Captions = { reported: { subtitle_paths: {}, caption_errors: {} }, dir, files: [] };
  const requested = Object.entries(job.outputs.subtitle_paths ?? {});
  const audioByTrack = new Map<number, { wavPath: string; durationSeconds: number }>();
  const cwd = join(options.work, "captions");
  if (requested.length > 0) await mkdir(cwd, { recursive: true });
  for (const [index, [language, key]] of requested.entries()) {
    const onProgress = (fraction: number) => options.onProgress((index + fraction) / requested.length);
    try {
      if (await createOne(language, key, onProgress)) captions.reported.subtitle_paths[language] = key;
      else captions.reported.separate_captions = true;
    } catch (error) {
      options.signal.throwIfAborted();
      const { message, detail } = wordsOf(error);
      context.log.warn({ job_id: job.job.id, language, error: message, detail }, "A caption could not be created.");
      if (job.outputs.captions_required) throw new CaptionFailed(`${language}: ${message}`, message !== NO_AUDIO);
      captions.reported.caption_errors[language] = message.slice(0, MAX_MESSAGE);
    }
    onProgress(1);
  }
  await rm(cwd, { recursive: true, force: true });
  return captions;

  /** Whether it did; false: a job of its own does, where the server offers that. */
  async function createOne(language: string, key: string, onProgress: (fraction: number) => void): Promise<boolean> {
    const { transcriber } = context;
    const isLeft = (seconds: number) =>
      job.outputs.separate_captions === true && (!transcriber || seconds * 1000 > PARTS_FROM_MS);
    if (isLeft(options.probe.durationSeconds ?? 0)) return false;
    if (!transcriber) throw new TranscriptionFailed("Transcription is not configured on the worker.");
    const startedAt = performance.now();
    const audio = await audioFor(language);
    if (isLeft(audio.durationSeconds)) return false;
    const extractedAt = performance.now();
    const tick = (fraction: number) => {
      onProgress(fraction);
      // Its share of the whole job may be too small to count.
      options.onMove();
    };
    const speech = await within(limitMs(audio.durationSeconds), options.signal, tick, (signal) =>
      transcriber.transcribe({ ...audio, language, cwd, signal, onProgress }),
    );
    const vtt = await vttOfSpeech(speech);
    const file = fileOf(job, key);
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeResult(join(dir, file), vtt);
    captions.files.push(file);
    const wordsKey = job.outputs.words_paths?.[language];
    const words = wordsKey === undefined ? null : timesOfWords(speech);
    if (wordsKey !== undefined && words !== null) {
      const wordsFile = fileOf(job, wordsKey);
      await writeResult(join(dir, wordsFile), words);
      captions.files.push(wordsFile);
    }
    context.log.info(
      {
        job_id: job.job.id,
        language,
        sound_seconds: Math.round(audio.durationSeconds),
        extract_ms: Math.round(extractedAt - startedAt),
        transcribe_ms: Math.round(performance.now() - extractedAt),
      },
      "Caption created.",
    );
    return true;
  }

  async function audioFor(language: string) {
    const track = spokenLanguage(options.probe, language);
    if (!track) throw new TranscriptionFailed(NO_AUDIO);
    const known = audioByTrack.get(track.index);
    if (known) return known;
    const wavPath = join(cwd, `sound-${track.index}.wav`);
    const durationSeconds = await writeSpeech({
      ffmpeg: context.binaries.ffmpeg,
      input: options.input,
      track,
      wavPath,
      cwd,
      signal: options.signal,
      whole: options.whole,
      onMove: options.onMove,
      pidDir: context.scratch.pidDir,
      memoryBytes: context.memoryBytes,
    });
    if (durationSeconds === 0) throw new TranscriptionFailed(NO_AUDIO);
    const audio = { wavPath, durationSeconds };
    audioByTrack.set(track.index, audio);
    return audio;
  }
}

/** Runs `work` with its own signal that aborts at the time limit, and reports the elapsed share of the limit. */
export async function within<T>(
  ms: number,
  outer: AbortSignal,
  onProgress: (fraction: number) => void,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = abortAfter(ms);
  const startedAt = performance.now();
  const ticks = setInterval(() => onProgress(Math.min(1, (performance.now() - startedAt) / ms)), TICK_MS);
  try {
    return await work(AbortSignal.any([outer, limit]));
  } catch (error) {
    outer.throwIfAborted();
    if (limit.aborted) throw new TranscriptionFailed(`The transcription took longer than ${ms / 1000} s.`);
    throw error;
  } finally {
    clearInterval(ticks);
  }
}

function fileOf({ outputs: { prefix } }: WorkerContract, key: string): string {
  const file = pathBelow(prefix, key);
  if (file === null || !isPlainPath(file))
    throw new TranscriptionFailed("The server requested captions outside of the job's prefix.");
  return file;
}

/** Uploads them with the results. Not before the encode has ended, which may start again and empty the directory. */
export async function addCaptions({ dir, files }: Pick<Captions, "dir" | "files">, outDir: string): Promise<void> {
  for (const file of files) {
    await mkdir(dirname(join(outDir, file)), { recursive: true });
    await copyResult(join(dir, file), join(outDir, file));
  }
}

/** Messages are shown to the owner of the video: unexpected errors are reported without detail. */
function wordsOf(error: unknown): { message: string; detail: string } {
  if (error instanceof TranscriptionFailed) return { message: error.message, detail: error.detail };
  if (error instanceof MediaError) return { message: error.message, detail: error.logTail };
  return { message: "Unexpected worker error.", detail: String(error) };
}
