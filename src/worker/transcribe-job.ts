import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { writeResult } from "#media/results.ts";
import { ownPath } from "#model/object-keys.ts";
import type { Speech } from "#platform/outbound/transcribe/speech.ts";
import { confidenceOf, vttOfSpeech, wordsOf } from "#platform/outbound/transcribe/speech-text.ts";
import type { Transcriber } from "#platform/outbound/transcribe/transcriber.ts";
import type { SpeechCompletion } from "#protocol/worker-client.ts";
import type { JobContext } from "./context.ts";
import { Publisher } from "./publisher.ts";
import { SpeechFailed, speechFailure } from "./speech-failed.ts";
import { recognize, type SpeechContract, speechOf } from "./speech-media.ts";
import { divideAudio, joinSpeech, transcribePart } from "./speech-parts.ts";
import type { Workspace } from "./transcode-job.ts";
import { removeFolder } from "./transfer.ts";

const RECOGNIZED = 99;

/**
 * Recognizes the speech of an asset, or does the step of it that the contract names. Throws SpeechFailed, MediaError and the errors
 * of transfers.
 */
export async function transcribeMedia(
  job: SpeechContract,
  context: JobContext,
  workspace: Workspace,
): Promise<SpeechCompletion> {
  const { signal } = workspace.heartbeat;
  try {
    switch (job.speech.step) {
      case "plan":
        return await divideAudio(job, context, workspace);
      case "part":
        return await transcribePart(job, context, workspace, requireTranscriber(context));
      case "join": {
        const { speech, audioLanguage } = await joinSpeech(job, context, workspace);
        return await publishSpeech(job, context, workspace, { speech, audioLanguage });
      }
      default:
        return await transcribeAll(job, context, workspace, requireTranscriber(context));
    }
  } catch (error) {
    signal.throwIfAborted();
    throw speechFailure(error);
  }
}

function requireTranscriber({ transcriber }: JobContext): Transcriber {
  if (transcriber) return transcriber;
  throw new SpeechFailed("transcription_not_configured", "The worker has no transcriber.", { retryable: true });
}

async function transcribeAll(
  job: SpeechContract,
  context: JobContext,
  workspace: Workspace,
  transcriber: Transcriber,
): Promise<SpeechCompletion> {
  const { language } = job.speech;
  const startedAt = performance.now();
  const audio = await speechOf(job, context, workspace);
  const extractedAt = performance.now();
  const speech = await recognize(transcriber, audio, workspace, { language, until: RECOGNIZED });
  const completion = await publishSpeech(job, context, workspace, { speech, audioLanguage: audio.language });
  const took = { extract_ms: extractedAt - startedAt, transcribe_ms: performance.now() - extractedAt };
  const rounded = Object.fromEntries(Object.entries(took).map(([name, ms]) => [name, Math.round(ms)]));
  const fields = { job_id: job.job.id, language, sound_seconds: Math.round(audio.durationSeconds), ...rounded };
  context.log.info(fields, "Captions generated.");
  return completion;
}

type Recognized = { speech: Speech; audioLanguage: string | null };

/** Writes the captions, and the times of their words. */
async function publishSpeech(
  job: SpeechContract,
  { client }: JobContext,
  { heartbeat, outDir }: Workspace,
  { speech, audioLanguage }: Recognized,
): Promise<SpeechCompletion> {
  const { signal } = heartbeat;
  const { prefix } = job.outputs;
  const vtt = await vttOfSpeech(speech);
  await removeFolder(outDir);
  await mkdir(outDir, { recursive: true });
  const file = ownPath(prefix, job.speech.path);
  await writeResult(join(outDir, file), vtt);
  const words = wordsOf(speech);
  const wordsFile =
    words === null || job.speech.words_path == null ? undefined : ownPath(prefix, job.speech.words_path);
  if (words !== null && wordsFile !== undefined) await writeResult(join(outDir, wordsFile), words);
  const files = [file, ...(wordsFile === undefined ? [] : [wordsFile])];
  heartbeat.report("publishing", RECOGNIZED);
  const publisher = new Publisher({ client, job, dir: outDir, signal, onMove: () => heartbeat.move() });
  await publisher.finish(files).finally(() => publisher.stop());
  const { language } = speech;
  return { speech: { language, audio_language: audioLanguage, confidence: confidenceOf(speech) } };
}
