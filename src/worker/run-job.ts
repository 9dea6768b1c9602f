import { access, rm } from "node:fs/promises";
import { join } from "node:path";
import { type EncodeOptions, type EncodeResult, encode } from "../media/encode.ts";
import { encodingSpec } from "../media/encoding-spec.ts";
import { MediaError } from "../media/error.ts";
import type { Binaries } from "../media/ffmpeg.ts";
import { probe } from "../media/probe.ts";
import type { Transcriber } from "../outbound/transcribe/transcriber.ts";
import { abreast } from "./abreast.ts";
import { CaptionFailed, type Captions, makeCaptions, putCaptions } from "./captions.ts";
import type { Completion, Failure, WorkerContract } from "./contract.ts";
import { Heart } from "./heart.ts";
import { type LeaseClient, LeaseLost, ServerAway, ServerRefused } from "./lease-client.ts";
import type { Scratch } from "./scratch.ts";
import { download, removeFolder, SourceCorrupt, sourceMissing, sumOf, syncFiles, upload } from "./transfer.ts";

export type Log = Record<"info" | "warn" | "error", (fields: Record<string, unknown>, message: string) => void>;

export type JobContext = {
  client: LeaseClient;
  binaries: Binaries;
  scratch: Scratch;
  /** The most that one ffmpeg may allocate. */
  memoryBytes?: number | undefined;
  transcriber?: Transcriber | null | undefined;
  log: Log;
  /** Aborted when the worker is to stop: the job is given back. */
  signal: AbortSignal;
};

export type JobEnd = "completed" | "failed" | "released" | "canceled" | "lost";

// What the stages weigh in 0–100; encoding is nearly all of the time.
const PROBED = 5;
const ENCODED = 95;
/** Of a job whose captions take longer than its encode: the rest of 100 is for publishing. */
const CAPTIONED = 99;

/** What a worker that is told to stop still gives to a `complete` that is under way. */
const COMPLETE_GRACE_MS = 4000;

/** Takes one leased job to its end and tells the server. Never throws for what is the job's fault or the server's. */
export async function runJob(job: WorkerContract, context: JobContext): Promise<JobEnd> {
  const { client, log, signal } = context;
  const fields = { job_id: job.job.id, asset_id: job.job.asset_id, attempt: job.job.attempt };
  const heart = new Heart(client, job, {
    signal,
    onTrouble: (error) => log.warn({ ...fields, error: String(error) }, "A heartbeat failed."),
  });
  const work = await context.scratch.jobFolder(`job-${job.job.id}`);
  const outDir = job.artifacts.local_path ?? join(work, "out");
  let isAnnounced = false;
  log.info(fields, "The job begins.");
  try {
    const completion = await make(job, context, { heart, work, outDir });
    // From here on the files may be what viewers are sent to, even if no answer arrives.
    isAnnounced = true;
    // A heartbeat that came in behind it would be answered 409 and look like a lost lease.
    await heart.stop();
    await client.complete(job, completion, someTimeAfter(signal, COMPLETE_GRACE_MS));
    log.info(fields, "The job is complete.");
    return "completed";
  } catch (error) {
    await heart.stop();
    if (!isAnnounced) await removeFolder(outDir);
    return await tell(error);
  } finally {
    await heart.stop();
    await removeFolder(work);
  }

  async function tell(error: unknown): Promise<JobEnd> {
    if (heart.reason === "canceled" || heart.reason === "lost" || error instanceof LeaseLost) {
      const end = heart.reason === "canceled" ? "canceled" : "lost";
      log.warn(fields, end === "canceled" ? "The job was cancelled." : "The lease is lost; the result is dropped.");
      return end;
    }
    try {
      if (signal.aborted) {
        await client.release(job);
        log.info(fields, "The job is given back.");
        return "released";
      }
      const failure = toFailure(error);
      log.error({ ...fields, code: failure.code, error: failure.message }, "The job failed.");
      await client.fail(job, failure, signal);
      return "failed";
    } catch (untold) {
      // The lease runs out by itself, and the server tries the job again.
      log.warn({ ...fields, error: String(untold) }, "The server could not be told how the job ended.");
      return "lost";
    }
  }
}

function someTimeAfter(signal: AbortSignal, ms: number): AbortSignal {
  const late = new AbortController();
  signal.addEventListener("abort", () => setTimeout(() => late.abort(), ms).unref(), { once: true });
  return late.signal;
}

type Rooms = { heart: Heart; work: string; outDir: string };

async function make(job: WorkerContract, context: JobContext, { heart, work, outDir }: Rooms): Promise<Completion> {
  const { client, binaries, scratch, memoryBytes } = context;
  const { signal } = heart;
  const { outputs, source } = job;
  const input = source.local_path ?? join(work, "source");
  if (source.local_path) await access(source.local_path).catch(sourceMissing);
  else {
    heart.report("downloading", 0);
    const size = source.bytes || Number.POSITIVE_INFINITY;
    await download(client, job, {
      path: input,
      signal,
      onBytes: (bytes) => heart.report("downloading", (PROBED * bytes) / size),
    });
  }
  const spoiled = new AbortController();
  // Beside the rest: it reads what is read anyway, and takes a small part of the time that encoding does.
  const sum = sumOf(input, source.sha256, signal);
  sum.catch((error) => error instanceof SourceCorrupt && spoiled.abort());
  const { result, captions } = await encoded().catch(async (error) => {
    // A damaged source is mostly met by ffmpeg first, which cannot say why.
    if (source.sha256 && !signal.aborted) await sum;
    throw error;
  });
  const sourceSum = await sum;
  if (!source.local_path) await rm(input, { force: true });

  heart.report("publishing", ENCODED);
  await putCaptions(job, context, { captions, signal });
  if (job.artifacts.local_path) await syncFiles(outDir, result.files);
  else {
    const share = (100 - ENCODED) / result.files.length;
    await upload(client, job, {
      dir: outDir,
      files: result.files,
      signal,
      onFile: (done) => heart.report("publishing", ENCODED + done * share),
    });
  }
  heart.report("publishing", 100);
  return { ...toCompletion(result, outputs.prefix, sourceSum), ...captions.told };

  async function encoded(): Promise<{ result: EncodeResult; captions: Captions }> {
    const until = AbortSignal.any([signal, spoiled.signal]);
    heart.report("probing", PROBED);
    const found = await probe(input, binaries, { signal: until, cwd: work, pidDir: scratch.pidDir, memoryBytes });
    heart.report("encoding", PROBED);
    // A job that was given back keeps its attempt number, and so its folder.
    await removeFolder(outDir);
    let captioned = 0;
    let isEncoded = false;
    const tellCaptions = () =>
      isEncoded && captioned < 1 && heart.report("captioning", ENCODED + captioned * (CAPTIONED - ENCODED));
    const [result, captions] = await abreast(
      until,
      async (signal) => {
        const made = await encode({
          ...{ input, outDir, probe: found, spec: encodingSpec, binaries, signal, memoryBytes },
          scratchDir: work,
          pidDir: scratch.pidDir,
          names: wantedNames(job),
          onProgress: (fraction) => heart.report("encoding", PROBED + fraction * (ENCODED - PROBED)),
        });
        isEncoded = true;
        tellCaptions();
        return made;
      },
      (signal) => {
        const onProgress = (fraction: number) => {
          captioned = fraction;
          tellCaptions();
        };
        return makeCaptions(job, context, { input, probe: found, work, signal, onProgress });
      },
    );
    return { result, captions };
  }
}

/** The names that the contract asks for, where they lie beside each other under the prefix. */
function wantedNames({ outputs }: WorkerContract): NonNullable<EncodeOptions["names"]> {
  const named = (field: string, key: string | null | undefined) => {
    const rest = key?.startsWith(outputs.prefix) ? key.slice(outputs.prefix.length) : "";
    return /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(rest) ? { [field]: rest } : {};
  };
  return {
    ...named("manifest", outputs.manifest_path),
    ...named("dash", outputs.dash_manifest_path),
    ...named("thumbnail", outputs.thumbnail_path),
    ...named("storyboard", outputs.storyboard_path),
    ...named("mp4", outputs.mp4_path),
  };
}

type Media = Omit<Completion, "subtitle_paths" | "caption_errors">;

function toCompletion(result: EncodeResult, prefix: string, sourceSum: string): Media {
  return {
    manifest_path: prefix + result.manifest,
    dash_manifest_path: prefix + result.dash,
    thumbnail_path: prefix + result.thumbnail,
    storyboard_path: result.storyboard && prefix + result.storyboard,
    mp4_path: result.mp4 && prefix + result.mp4,
    media: {
      duration_seconds: result.durationSeconds,
      width: result.width,
      height: result.height,
      frame_rate: result.frameRate,
      bytes: result.bytes,
      source_sha256: sourceSum,
      renditions: result.renditions.map((one) => ({ ...one, playlist_path: prefix + one.playlist_path })),
    },
  };
}

function toFailure(error: unknown): Failure {
  if (error instanceof MediaError) {
    return { code: error.code, message: error.message, retryable: error.retryable, log_tail: error.logTail };
  }
  if (error instanceof CaptionFailed) {
    return { code: "caption_failed", message: error.message, retryable: error.retryable, log_tail: "" };
  }
  if (error instanceof SourceCorrupt) {
    return { code: "source_corrupt", message: error.message, retryable: false, log_tail: "" };
  }
  if ((error as NodeJS.ErrnoException)?.code === "ENOSPC") {
    return { code: "out_of_space", message: "There is no space left for the job.", retryable: true, log_tail: "" };
  }
  if (error instanceof ServerAway || error instanceof ServerRefused) {
    return { code: "transfer_failed", message: error.message, retryable: true, log_tail: "" };
  }
  // Not the source's fault as far as anyone can tell, so another worker may try.
  return {
    code: "worker_error",
    message: "The worker met an unexpected error.",
    retryable: true,
    log_tail: String(error),
  };
}
