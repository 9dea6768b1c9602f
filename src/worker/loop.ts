import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../lib/errors.ts";
import { type Encoder, requireEncoder } from "../media/encoders.ts";
import { encodingSpec } from "../media/encoding-spec.ts";
import type { Binaries } from "../media/ffmpeg.ts";
import { missingIsolation } from "../media/sandbox/sandbox.ts";
import type { Transcriber } from "../outbound/transcribe/transcriber.ts";
import type { JobContext, Log } from "./context.ts";
import { backoffMs, LeaseClient, ServerRefused, ServerUnreachable } from "./lease-client.ts";
import { type JobEnd, runJob } from "./run-job.ts";
import { openScratch } from "./scratch.ts";

export type WorkerOptions = {
  /** The server's base address. */
  server: string;
  /** Asked for at each call: the server may rotate it. */
  token: () => string;
  workerId: string;
  /** Jobs at once; one already keeps all cores busy. */
  concurrency?: number;
  /** May be shared by workers of one machine: each makes a folder of its own in it. */
  scratchDir: string;
  binaries: Binaries;
  /** Kept free on every disk that a job writes to: no job is taken below it, and one that reaches it fails. */
  minFreeBytes?: number;
  /** The most that one ffmpeg may allocate. */
  memoryBytes?: number | undefined;
  /** Makes captions; without one every caption that is asked for is told as an error. */
  transcriber?: Transcriber | null | undefined;
  /** Software unless told; tried before the first job is asked for. */
  encoder?: Encoder;
  /** Given when the server's data directory is on this machine: sources and results are then not sent over HTTP. */
  sharedDisk?: { dataDir: string };
  log: Log;
  /** Takes one job, if there is one, and ends. */
  isOnce?: boolean;
  onProgress?: JobContext["onProgress"];
  /** Aborting it drains: the current job is given back, ffmpeg ended, scratch removed. */
  signal: AbortSignal;
};

/** The longest that the server is asked to hold a claim until a job appears. */
const WAIT_SECONDS = 20;
/** The pace of asking a server that does not hold claims. */
const IDLE_MS = 1000;

/** By default: the smallest job would hardly fit. */
const MIN_FREE_BYTES = 64 * 2 ** 20;
const FULL_MS = 30_000;

/**
 * Leases and runs jobs until `signal` is aborted, or once; resolves when all is put away, with how the last job ended.
 * Throws ServerRefused when the server does not accept the worker (a wrong token).
 */
export async function startWorker(options: WorkerOptions): Promise<JobEnd | null> {
  const { server, token, workerId, binaries, memoryBytes, transcriber, log, onProgress, isOnce = false } = options;
  const { encoder = "software", minFreeBytes = MIN_FREE_BYTES } = options;
  await requireEncoder(binaries.ffmpeg, encoder, encodingSpec);
  const missing = await missingIsolation(binaries.ffmpeg);
  if (missing.length > 0) log.warn({ missing }, "ffmpeg cannot be fully confined on this system.");
  const scratch = await openScratch(options.scratchDir);
  const fault = new AbortController();
  const signal = AbortSignal.any([options.signal, fault.signal]);
  const client = new LeaseClient({ server, token, workerId });
  const settings = { memoryBytes, minFreeBytes, encoder, transcriber };
  const context: JobContext = { client, binaries, ...settings, scratch, log, signal, onProgress };
  try {
    const count = isOnce ? 1 : (options.concurrency ?? 1);
    const loops = Array.from({ length: count }, () => loop(context, { sharedDisk: options.sharedDisk, isOnce }));
    // One refusal ends them all, in order: jobs are given back before the scratch is removed.
    for (const one of loops) one.catch(() => fault.abort());
    const ends = await Promise.allSettled(loops);
    const failed = ends.find((end) => end.status === "rejected");
    if (failed) throw failed.reason;
    return ends[0]?.status === "fulfilled" ? ends[0].value : null;
  } finally {
    await scratch.remove();
  }
}

type LoopOptions = { sharedDisk: WorkerOptions["sharedDisk"]; isOnce: boolean };

async function loop(context: JobContext, { sharedDisk, isOnce }: LoopOptions): Promise<JobEnd | null> {
  const { client, scratch, minFreeBytes, log, signal } = context;
  let failures = 0;
  while (!signal.aborted) {
    const askedAt = performance.now();
    try {
      if (!(await scratch.hasRoom(minFreeBytes))) {
        if (isOnce) throw new UserError(`There is hardly any space left in ${scratch.dir}.`);
        log.warn({ scratch: scratch.dir }, "There is hardly any space left; no job is taken.");
        await pause(FULL_MS, signal);
        continue;
      }
      const job = await client.next({
        capabilities: await capabilities(sharedDisk),
        waitSeconds: isOnce ? 0 : WAIT_SECONDS,
        signal,
      });
      failures = 0;
      const end = job && (await runJob(job, context));
      if (isOnce) return end;
      if (end === "no_room") await pause(FULL_MS, signal);
      else if (!job) await pause(IDLE_MS - (performance.now() - askedAt), signal);
    } catch (error) {
      if (signal.aborted) return null;
      if (isOnce) throw error;
      if (error instanceof ServerRefused && (error.status === 401 || error.status === 403)) throw error;
      failures++;
      // Said once and then every now and then: a server that is restarted is no news.
      if (failures % 30 === 1)
        log.warn(
          { error: String(error) },
          error instanceof ServerUnreachable ? "The server is away." : "No job could be asked for.",
        );
      await pause(backoffMs(failures), signal);
    }
  }
  return null;
}

/** A nonce that only who shares the server's disk can read. It is read anew: a restarted server writes another. */
async function capabilities(sharedDisk: WorkerOptions["sharedDisk"]): Promise<Record<string, string>> {
  if (!sharedDisk) return {};
  const proof = await readFile(join(sharedDisk.dataDir, "local-proof"), "utf8").catch(() => "");
  return proof.trim() ? { local_proof: proof.trim() } : {};
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => {});
}
