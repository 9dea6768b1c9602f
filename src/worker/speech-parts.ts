import * as v from "valibot";
import { PartMerger } from "#platform/outbound/transcribe/divided/merge.ts";
import { activityIn, partsOfAudio } from "#platform/outbound/transcribe/divided/plan.ts";
import { shifted } from "#platform/outbound/transcribe/read-answer.ts";
import type { Speech, Word } from "#platform/outbound/transcribe/speech.ts";
import { type Transcriber, TranscriptionFailed } from "#platform/outbound/transcribe/transcriber.ts";
import { MAX_PART_BYTES, PART_OVERLAP_MS, PartSpeech } from "#protocol/speech.ts";
import type { SpeechCompletion } from "#protocol/worker-client.ts";
import type { JobContext } from "./context.ts";
import { SpeechFailed } from "./speech-failed.ts";
import { recognize, type SpeechContract, speechOf } from "./speech-media.ts";
import type { Workspace } from "./transcode-job.ts";

/** The steps of long audio: it is divided by one worker, recognized by all of them, and joined by one. */

/** Divides the audio into parts. */
export async function divideAudio(
  job: SpeechContract,
  context: JobContext,
  workspace: Workspace,
): Promise<SpeechCompletion> {
  const { wavPath, durationSeconds } = await speechOf(job, context, workspace);
  const parts = await partsOfAudio(wavPath);
  const fields = { job_id: job.job.id, sound_seconds: Math.round(durationSeconds), parts: parts.length };
  context.log.info(fields, "Long audio divided into parts.");
  return { parts: parts.map(({ startMs, endMs }) => ({ start_ms: startMs, end_ms: endMs })) };
}

/** Recognizes one part. What an engine says of silence is left out. */
export async function transcribePart(
  job: SpeechContract,
  context: JobContext,
  workspace: Workspace,
  transcriber: Transcriber,
): Promise<SpeechCompletion> {
  const { language, part } = job.speech;
  if (!part) throw new SpeechFailed("media_unreadable", "The job names no part.");
  const fromMs = Math.max(0, part.start_ms - PART_OVERLAP_MS);
  const audio = await speechOf(job, context, workspace, { fromMs, toMs: part.end_ms + PART_OVERLAP_MS });
  const { wavPath, durationSeconds } = audio;
  const isHeard = await activityIn(wavPath);
  const speech = await recognize(transcriber, audio, workspace, { language, until: 100 });
  const heard = speech.utterances.filter(({ startMs, endMs }) => isHeard(startMs, endMs));
  const utterances = shifted(heard, { startMs: fromMs, endMs: fromMs + Math.ceil(durationSeconds * 1000) });
  const sent = utterances.map((utterance) => ({ ...toWire(utterance), words: utterance.words.map(toWire) }));
  const result = { language: speech.language, audio_language: audio.language, utterances: sent };
  requireStorable(result);
  const fields = { job_id: job.job.id, language, from_ms: fromMs, sound_seconds: Math.round(durationSeconds) };
  context.log.info(fields, "Part of long audio recognized.");
  return { speech: result };
}

/** Joins what was recognized in all parts. */
export async function joinSpeech(job: SpeechContract, { client }: JobContext, { heartbeat }: Workspace) {
  const merger = new PartMerger();
  let audioLanguage: string | null = null;
  for await (const { start_ms, end_ms, audio_language, language, utterances } of client.parts(job, heartbeat.signal)) {
    audioLanguage ??= audio_language;
    const received = utterances.map(({ words, ...one }) => ({ ...fromWire(one), words: words.map(fromWire) }));
    merger.add({ startMs: start_ms, endMs: end_ms, language, utterances: received });
    heartbeat.move();
  }
  const speech: Speech = merger.end();
  return { speech, audioLanguage };
}

type SentWord = Omit<PartSpeech["utterances"][number], "words">;

/** In whole milliseconds. */
function toWire({ text, startMs, endMs, confidence }: Word): SentWord {
  const from = Math.max(0, Math.round(startMs));
  return { text, start_ms: from, end_ms: Math.max(from, Math.round(endMs)), confidence };
}

const fromWire = ({ text, start_ms, end_ms, confidence }: SentWord): Word => ({
  text,
  startMs: start_ms,
  endMs: end_ms,
  confidence,
});

/** The server takes no more than people can say. */
function requireStorable(speech: PartSpeech): void {
  const isTooLarge = Buffer.byteLength(JSON.stringify({ speech })) > MAX_PART_BYTES;
  if (isTooLarge || !v.is(PartSpeech, speech))
    throw new TranscriptionFailed("The engine returned more text than can be said in the time.");
}
