import { rm } from "node:fs/promises";
import { join } from "node:path";
import { primaryLanguage } from "#lib/base";
import { JoinImpossible } from "#media/join/faults.ts";
import { type Part, type PartRendition, readPart } from "#media/join/read-part.ts";
import { probe } from "#media/probe.ts";
import { createResult } from "#media/results.ts";
import { spokenLanguage, writeSpeech } from "#media/speech-audio.ts";
import type { Speech } from "#platform/outbound/transcribe/speech.ts";
import type { Transcriber } from "#platform/outbound/transcribe/transcriber.ts";
import type { SpeechWork } from "#protocol/speech.ts";
import type { WorkerContract } from "#protocol/worker-client.ts";
import { limitMs, within } from "./captions.ts";
import type { JobContext } from "./context.ts";
import { PartReader } from "./part-reader.ts";
import { noAudio, SpeechFailed } from "./speech-failed.ts";
import type { Workspace } from "./transcode-job.ts";

export type SpeechContract = WorkerContract & { speech: SpeechWork };

/** A part of the timeline, in ms. */
export type Range = { fromMs: number; toMs: number };

/** The share of reading and decoding in 0–100; recognition takes almost all of the time. */
const READ = 5;

/**
 * The audio in which the language of the job is spoken, as a WAV file, of one of the asset's renditions: these have the timeline
 * that is played, also after a trim, when the source is gone, and are a small part of its size. With `range` only the segments that
 * it needs are read. Throws SpeechFailed, MediaError and the errors of transfers.
 */
export async function speechOf(
  job: SpeechContract,
  context: JobContext,
  { heartbeat, work }: Workspace,
  range?: Range,
) {
  const { binaries, scratch, memoryBytes } = context;
  const { signal } = heartbeat;
  const input = join(work, "audio.mp4");
  const startInput = join(work, "audio-start.mp4");
  const { rendition, isFromStart } = await readRendition(job, context, { input, startInput, heartbeat, range });
  const run = { cwd: work, signal, pidDir: scratch.pidDir, memoryBytes };
  heartbeat.report("probing", READ);
  const media = await probe(input, binaries, run);
  const track = spokenLanguage(media, wantedLanguage(job) ?? "und") ?? noAudio();
  // What a clip, a trim or a client delivered may begin later than 0; times of parts count from there, as those of all of it do.
  const { startSeconds } = isFromStart ? media : await probe(startInput, binaries, run);
  const wavPath = join(work, "audio.wav");
  const durationSeconds = await writeSpeech({
    ...{ ...run, ffmpeg: binaries.ffmpeg, input, track, wavPath },
    ...(range && { range: { ...range, startSeconds: Math.max(0, startSeconds) } }),
    onMove: () => heartbeat.move(),
  });
  for (const path of [input, startInput]) await rm(path, { force: true });
  if (durationSeconds === 0) noAudio();
  return { wavPath, durationSeconds, language: rendition.language ?? track.language ?? null };
}

/** In which language the audio is wanted: a part has a detected one for its engine only, so all read the same rendition. */
const wantedLanguage = ({ speech }: SpeechContract): string | null =>
  speech.requested_language === undefined ? speech.language : speech.requested_language;

/** Recognizes the audio of `speechOf`, within a time limit. Progress is from READ up to `until`, in 0–100. */
export function recognize(
  transcriber: Transcriber,
  { wavPath, durationSeconds }: { wavPath: string; durationSeconds: number },
  { heartbeat, work }: Workspace,
  { language, until }: { language: string | null; until: number },
): Promise<Speech> {
  heartbeat.report("captioning", READ);
  const onProgress = (fraction: number) => heartbeat.report("captioning", READ + fraction * (until - READ));
  return within(limitMs(durationSeconds), heartbeat.signal, onProgress, (signal) =>
    transcriber.transcribe({ wavPath, durationSeconds, language, cwd: work, signal, onProgress }),
  );
}

type Reading = { input: string; startInput: string; heartbeat: Workspace["heartbeat"]; range: Range | undefined };

async function readRendition(
  job: SpeechContract,
  context: JobContext,
  { input, startInput, heartbeat, range }: Reading,
): Promise<{ rendition: PartRendition; isFromStart: boolean }> {
  const { signal } = heartbeat;
  const part = job.join?.parts[0];
  if (!job.join || !part) throw new SpeechFailed("media_unreadable", "The job names no media.");
  const reader = new PartReader({ ...job, join: job.join }, context, part, signal);
  heartbeat.report("downloading", 0);
  try {
    const read = (path: string) => reader.read(path);
    const opened = await readPart(part.asset_id, part.manifest_path, read, { prefersAudio: true });
    const rendition = chosen(opened, wantedLanguage(job)) ?? noAudio();
    const segments = range ? segmentsOf(rendition, range) : rendition.segments;
    const [first] = rendition.segments;
    const isFromStart = first === undefined || segments[0] === first;
    reader.announce([isFromStart ? segments : [first, ...segments]]);
    if (!isFromStart) {
      await using start = await createResult(startInput);
      await start.appendFile(rendition.bytes);
      await start.appendFile(await reader.read(first));
    }
    await using file = await createResult(input);
    await file.appendFile(rendition.bytes);
    for (const [index, path] of segments.entries()) {
      await file.appendFile(await reader.read(path));
      heartbeat.report("downloading", (READ * (index + 1)) / segments.length);
    }
    return { rendition, isFromStart };
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

/** A playlist may state durations in whole milliseconds, so that those of many segments add up to another time. */
const ROUNDING_MS = 0.5;
/** A decoder of audio needs what was before. */
const WARM_UP_MS = 200;

/** The segments that contain a range. */
function segmentsOf({ segments, seconds }: PartRendition, { fromMs, toMs }: Range): string[] {
  let endMs = 0;
  return segments.filter((_, index) => {
    const startMs = endMs;
    endMs += (seconds[index] ?? 0) * 1000;
    const slack = WARM_UP_MS + (index + 1) * ROUNDING_MS;
    return endMs + slack >= fromMs - WARM_UP_MS && startMs - slack <= toMs;
  });
}
