import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { primaryLanguage } from "#lib/base";
import { JoinImpossible } from "#media/join/faults.ts";
import { type Part, type PartRendition, readPart } from "#media/join/read-part.ts";
import { probe } from "#media/probe.ts";
import { createResult, writeResult } from "#media/results.ts";
import { spokenLanguage, writeSpeech } from "#media/speech-audio.ts";
import {
  CaptionsTooLarge,
  confidenceOf,
  NoSpeech,
  vttOfSpeech,
  wordsOf,
} from "#platform/outbound/transcribe/speech-text.ts";
import { TranscriptionFailed } from "#platform/outbound/transcribe/transcriber.ts";
import type { SpeechWork } from "#protocol/speech.ts";
import type { SpeechCompletion, WorkerContract } from "#protocol/worker-client.ts";
import { limitMs, within } from "./captions.ts";
import type { JobContext } from "./context.ts";
import { PartReader } from "./part-reader.ts";
import { Publisher } from "./publisher.ts";
import type { Workspace } from "./transcode-job.ts";
import { removeFolder } from "./transfer.ts";

type SpeechContract = WorkerContract & { speech: SpeechWork };

// Shares of the stages in 0–100; recognition takes almost all of the time.
const READ = 5;
const RECOGNIZED = 99;

/** Speech that was not recognized. The message is for the owner of the asset, `detail` for the log. */
export class SpeechFailed extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly detail: string;
  constructor(code: string, message: string, { retryable = false, detail = "" } = {}) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.detail = detail;
  }
}

const noAudio = (): never => {
  throw new SpeechFailed("no_audio", "The asset has no audio.");
};

/**
 * Recognizes the speech of an asset in one of its audio renditions: these have the timeline that is played, also after a trim,
 * when the source is gone, and are a small part of its size. Throws SpeechFailed, MediaError and the errors of transfers.
 */
export async function transcribeMedia(
  job: SpeechContract,
  context: JobContext,
  workspace: Workspace,
): Promise<SpeechCompletion> {
  const { client, transcriber, log } = context;
  const { heartbeat, outDir, work } = workspace;
  const { signal } = heartbeat;
  if (!transcriber)
    throw new SpeechFailed("transcription_not_configured", "The worker has no transcriber.", { retryable: true });
  const { language, path } = job.speech;
  const startedAt = performance.now();
  const audio = await speechOf(job, context, workspace);
  const extractedAt = performance.now();
  heartbeat.report("captioning", READ);
  const onProgress = (fraction: number) => heartbeat.report("captioning", READ + fraction * (RECOGNIZED - READ));
  try {
    const { wavPath, durationSeconds } = audio;
    const speech = await within(limitMs(durationSeconds), signal, onProgress, (limited) =>
      transcriber.transcribe({ wavPath, durationSeconds, language, cwd: work, signal: limited, onProgress }),
    );
    const vtt = await vttOfSpeech(speech);
    await removeFolder(outDir);
    await mkdir(outDir, { recursive: true });
    const file = path.slice(job.outputs.prefix.length);
    await writeResult(join(outDir, file), vtt);
    const words = wordsOf(speech);
    const wordsFile = words === null ? undefined : job.speech.words_path?.slice(job.outputs.prefix.length);
    if (words !== null && wordsFile !== undefined) await writeResult(join(outDir, wordsFile), words);
    const files = [file, ...(wordsFile === undefined ? [] : [wordsFile])];
    heartbeat.report("publishing", RECOGNIZED);
    const publisher = new Publisher({ client, job, dir: outDir, signal, onMove: () => heartbeat.move() });
    await publisher.finish(files).finally(() => publisher.stop());
    const took = { extract_ms: extractedAt - startedAt, transcribe_ms: performance.now() - extractedAt };
    const rounded = Object.fromEntries(Object.entries(took).map(([name, ms]) => [name, Math.round(ms)]));
    const fields = { job_id: job.job.id, language, sound_seconds: Math.round(durationSeconds), ...rounded };
    log.info(fields, "Captions generated.");
    return {
      speech: { language: speech.language, audio_language: audio.language, confidence: confidenceOf(speech) },
    };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof NoSpeech) throw new SpeechFailed("no_speech", error.message);
    if (error instanceof CaptionsTooLarge) throw new SpeechFailed("captions_too_large", error.message);
    if (error instanceof TranscriptionFailed)
      throw new SpeechFailed("transcription_failed", error.message, { retryable: true, detail: error.detail });
    throw error;
  }
}

/** The audio in which the language of the job is spoken, as a WAV file. */
async function speechOf(job: SpeechContract, context: JobContext, { heartbeat, work }: Workspace) {
  const { binaries, scratch, memoryBytes } = context;
  const { signal } = heartbeat;
  const input = join(work, "audio.mp4");
  const rendition = await readRendition(job, context, input, heartbeat);
  const run = { cwd: work, signal, pidDir: scratch.pidDir, memoryBytes };
  heartbeat.report("probing", READ);
  const media = await probe(input, binaries, run);
  const track = spokenLanguage(media, job.speech.language ?? "und") ?? noAudio();
  const wavPath = join(work, "audio.wav");
  const durationSeconds = await writeSpeech({
    ...{ ...run, ffmpeg: binaries.ffmpeg, input, track, wavPath },
    onMove: () => heartbeat.move(),
  });
  await rm(input, { force: true });
  if (durationSeconds === 0) noAudio();
  return { wavPath, durationSeconds, language: rendition.language ?? track.language ?? null };
}

async function readRendition(
  job: SpeechContract,
  context: JobContext,
  input: string,
  heartbeat: Workspace["heartbeat"],
): Promise<PartRendition> {
  const { signal } = heartbeat;
  const part = job.join?.parts[0];
  if (!job.join || !part) throw new SpeechFailed("media_unreadable", "The job names no media.");
  const reader = new PartReader({ ...job, join: job.join }, context, part, signal);
  heartbeat.report("downloading", 0);
  try {
    const opened = await readPart(part.asset_id, part.manifest_path, (path) => reader.read(path));
    const rendition = chosen(opened, job.speech.language) ?? noAudio();
    reader.announce([rendition.segments]);
    await using file = await createResult(input);
    await file.appendFile(rendition.bytes);
    for (const [index, path] of rendition.segments.entries()) {
      await file.appendFile(await reader.read(path));
      heartbeat.report("downloading", (READ * (index + 1)) / rendition.segments.length);
    }
    return rendition;
  } catch (error) {
    if (!(error instanceof JoinImpossible)) throw error;
    throw new SpeechFailed(
      "media_unreadable",
      error.message.replace("The assets cannot be joined", "The media cannot be read"),
    );
  }
}

/** Audio in the language, else the first; of media without audio renditions the smallest video, which may contain audio. */
function chosen({ renditions }: Part, language: string | null): PartRendition | undefined {
  const audio = renditions.filter(({ kind, surroundOf }) => kind === "audio" && surroundOf === null);
  const wanted = language === null ? null : primaryLanguage(language);
  const own = audio.find((one) => one.language !== null && wanted !== null && primaryLanguage(one.language) === wanted);
  return own ?? audio[0] ?? renditions.filter(({ kind }) => kind === "video").at(-1);
}
