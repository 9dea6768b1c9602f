import { copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { MediaError } from "../media/error.ts";
import type { Binaries } from "../media/ffmpeg.ts";
import type { Probe } from "../media/probe.ts";
import { spokenLanguage, writeSpeech } from "../media/speech-audio.ts";
import { type Transcriber, TranscriptionFailed } from "../outbound/transcribe/transcriber.ts";
import type { Completion, WorkerContract } from "./contract.ts";
import type { LeaseClient } from "./lease-client.ts";
import type { Scratch } from "./scratch.ts";

export type Captions = {
  /** What `complete` tells of them. */
  told: Pick<Completion, "subtitle_paths" | "caption_errors">;
  /** Where they lie until they are put, and their paths below it. */
  dir: string;
  files: string[];
};

/** A caption that is required and cannot be made. */
export class CaptionFailed extends Error {
  readonly retryable: boolean;
  constructor(message: string, retryable: boolean) {
    super(message);
    this.retryable = retryable;
  }
}

type Say = (fields: Record<string, unknown>, message: string) => void;
/** Of the job's context what captions need. */
type CaptionContext = {
  client: LeaseClient;
  binaries: Binaries;
  scratch: Scratch;
  memoryBytes?: number | undefined;
  transcriber?: Transcriber | null | undefined;
  log: { info: Say; warn: Say };
};

type CaptionOptions = {
  input: string;
  probe: Probe;
  /** A folder of the job's own. */
  work: string;
  signal: AbortSignal;
  /** 0 to 1. It moves on by the clock, since recognisers do not tell, and what stands still is taken for dead. */
  onProgress: (fraction: number) => void;
};

const NO_SOUND = "The source has no sound.";
const MINUTE_MS = 60_000;
const MAX_MS = 12 * 60 * MINUTE_MS;
const TICK_MS = 5000;
const MAX_MESSAGE = 500;
/** Longer than any large model takes on a small machine. */
const limitMs = (durationSeconds: number) =>
  Math.min(MAX_MS, Math.max(10 * MINUTE_MS, Math.ceil(durationSeconds * 20) * 1000));

/**
 * Makes the captions that the contract asks for, one language after the other; it is meant to run beside the encode.
 * What goes wrong is told of each; throws CaptionFailed where they are required, and what the signal was aborted with.
 */
export async function makeCaptions(
  job: WorkerContract,
  context: CaptionContext,
  options: CaptionOptions,
): Promise<Captions> {
  const dir = join(options.work, "captions-out");
  const captions: Captions = { told: { subtitle_paths: {}, caption_errors: {} }, dir, files: [] };
  const wanted = Object.entries(job.outputs.subtitle_paths ?? {});
  const sounds = new Map<number, { wavPath: string; durationSeconds: number }>();
  const cwd = join(options.work, "captions");
  if (wanted.length > 0) await mkdir(cwd, { recursive: true });
  for (const [index, [language, key]] of wanted.entries()) {
    const onProgress = (fraction: number) => options.onProgress((index + fraction) / wanted.length);
    try {
      await makeOne(language, key, onProgress);
      captions.told.subtitle_paths[language] = key;
    } catch (error) {
      options.signal.throwIfAborted();
      const { message, detail } = wordsOf(error);
      context.log.warn({ job_id: job.job.id, language, error: message, detail }, "A caption could not be made.");
      if (job.outputs.captions_required) throw new CaptionFailed(`${language}: ${message}`, message !== NO_SOUND);
      captions.told.caption_errors[language] = message.slice(0, MAX_MESSAGE);
    }
    onProgress(1);
  }
  await rm(cwd, { recursive: true, force: true });
  return captions;

  async function makeOne(language: string, key: string, onProgress: (fraction: number) => void): Promise<void> {
    const { transcriber } = context;
    if (!transcriber) throw new TranscriptionFailed("Transcription is not configured on the worker.");
    const startedAt = performance.now();
    const sound = await soundFor(language);
    const extractedAt = performance.now();
    const vtt = await within(limitMs(sound.durationSeconds), options.signal, onProgress, (signal) =>
      transcriber.transcribe({ ...sound, language, cwd, signal }),
    );
    const file = fileOf(job, key);
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), vtt);
    captions.files.push(file);
    context.log.info(
      {
        job_id: job.job.id,
        language,
        sound_seconds: Math.round(sound.durationSeconds),
        extract_ms: Math.round(extractedAt - startedAt),
        transcribe_ms: Math.round(performance.now() - extractedAt),
      },
      "A caption is made.",
    );
  }

  async function soundFor(language: string) {
    const track = spokenLanguage(options.probe, language);
    if (!track) throw new TranscriptionFailed(NO_SOUND);
    const known = sounds.get(track.index);
    if (known) return known;
    const wavPath = join(cwd, `sound-${track.index}.wav`);
    const durationSeconds = await writeSpeech({
      ffmpeg: context.binaries.ffmpeg,
      input: options.input,
      ...{ track, wavPath, cwd, signal: options.signal },
      pidDir: context.scratch.pidDir,
      memoryBytes: context.memoryBytes,
    });
    if (durationSeconds === 0) throw new TranscriptionFailed(NO_SOUND);
    const sound = { wavPath, durationSeconds };
    sounds.set(track.index, sound);
    return sound;
  }
}

/** Runs `work` with a signal of its own that ends it at the limit, and tells how much of the time is gone. */
async function within<T>(
  ms: number,
  outer: AbortSignal,
  onProgress: (fraction: number) => void,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = AbortSignal.timeout(ms);
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
  const file = key.slice(prefix.length);
  if (!key.startsWith(prefix) || file.split("/").some((part) => /^\.{0,2}$/.test(part)))
    throw new TranscriptionFailed("The server asks for captions outside of the job's own folder.");
  return file;
}

/** Puts them beside the results. Not before the encode is done, which may begin anew and empty the folder. */
export async function addCaptions({ dir, files }: Captions, outDir: string): Promise<void> {
  for (const file of files) {
    await mkdir(dirname(join(outDir, file)), { recursive: true });
    await copyFile(join(dir, file), join(outDir, file));
  }
}

/** Messages go to the owner of the video: of what was not foreseen they get nothing but that it was so. */
function wordsOf(error: unknown): { message: string; detail: string } {
  if (error instanceof TranscriptionFailed) return { message: error.message, detail: error.detail };
  if (error instanceof MediaError) return { message: error.message, detail: error.logTail };
  return { message: "The worker met an unexpected error.", detail: String(error) };
}
