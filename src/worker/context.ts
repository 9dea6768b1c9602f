import type { Encoders } from "#lib/codecs";
import type { Tracer } from "#lib/tracing";
import type { Binaries } from "#media/ffmpeg.ts";
import type { Transcriber } from "#platform/outbound/transcribe/transcriber.ts";
import type { LeaseClient } from "./lease-client.ts";
import type { Scratch } from "./scratch.ts";
import type { SourceCache } from "./tasks/source-cache.ts";

export type Log = Record<"info" | "warn" | "error", (fields: Record<string, unknown>, message: string) => void>;

export type JobContext = {
  client: LeaseClient;
  binaries: Binaries;
  scratch: Scratch;
  /** The sources of tasks; whole jobs download their source themselves. */
  sources: SourceCache;
  /** Kept free on every disk that a job writes to. */
  minFreeBytes: number;
  /** Memory limit of one ffmpeg process. */
  memoryBytes?: number | undefined;
  encoders?: Encoders | undefined;
  transcriber?: Transcriber | null | undefined;
  log: Log;
  /** Null while traces are off. */
  tracer?: Tracer | null | undefined;
  /** Aborts when the worker is to stop: the job is released. */
  signal: AbortSignal;
  /** 0 to 100, at each change of the stage or of a percent. */
  onProgress?: ((job: { id: number; stage: string; progress: number }) => void) | undefined;
};
