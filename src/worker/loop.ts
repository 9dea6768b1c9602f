import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { sleep, UserError } from "#lib/base";
import type { Encoder } from "#lib/codecs";
import { describeTotalLimits, missingIsolation } from "#lib/sandbox";
import type { Tracer } from "#lib/tracing";
import { encodingSpec } from "#media/encoding-spec.ts";
import type { Binaries } from "#media/ffmpeg.ts";
import { requireEncoder } from "#media/require-encoder.ts";
import type { Transcriber } from "#platform/outbound/transcribe/transcriber.ts";
import { CLIPS_VERSION } from "#protocol/clip.ts";
import { JOINS_VERSION } from "#protocol/join.ts";
import { CAPTIONS_VERSION } from "#protocol/speech.ts";
import { TASKS_VERSION } from "#protocol/task.ts";
import type { Claim, Lane } from "#protocol/worker.ts";
import type { JobContext, Log } from "./context.ts";
import { backoffMs, LeaseClient, ServerRefused, ServerUnreachable } from "./lease-client.ts";
import { liveLoop } from "./live-encode.ts";
import { type JobEnd, runJob } from "./run-job.ts";
import { openScratch } from "./scratch.ts";
import { SourceCache } from "./tasks/source-cache.ts";

export type WorkerOptions = {
  /** The server's base URL. */
  server: string;
  /** Read at each call, because the server may rotate it. */
  token: () => string;
  workerId: string;
  /** The version of the program, for the server's list of workers. */
  version?: string;
  /** Jobs at once; a single one already uses all cores. */
  concurrency?: number;
  /** Live streams at once, next to jobs; none by default. */
  liveEncodes?: number;
  /** Workers on one machine may share it: each creates its own directory in it. */
  scratchDir: string;
  binaries: Binaries;
  /** Kept free on every disk that a job writes to: below it no job is claimed, and a job that reaches it fails. */
  minFreeBytes?: number;
  /** Memory limit of one ffmpeg process. */
  memoryBytes?: number | undefined;
  /** Produces captions; without one every requested caption is reported as an error. */
  transcriber?: Transcriber | null | undefined;
  /** Software by default; tested before the first job is claimed. */
  encoder?: Encoder;
  /**
   * Set when the server's data directory is on this machine: sources and results are then not transferred over HTTP.
   */
  sharedDisk?: { dataDir: string };
  log: Log;
  tracer?: Tracer | null;
  /** Runs one job, if there is one, and stops. */
  isOnce?: boolean;
  onProgress?: JobContext["onProgress"];
  /** Stops the worker: the current job is released, ffmpeg is killed, scratch is deleted. */
  signal: AbortSignal;
};

/** The longest time that the server is asked to hold a claim. */
const WAIT_SECONDS = 20;
/** Polling interval for a server that does not hold claims. */
const IDLE_MS = 1000;

/** The default: the smallest job would hardly fit. */
export const MIN_FREE_BYTES = 64 * 2 ** 20;
const FULL_MS = 30_000;

/**
 * Claims and runs jobs until `signal` aborts, or once; resolves when everything is cleaned up, with the result of the
 * last job. Throws ServerRefused when the server does not accept the worker (an invalid token).
 */
export async function startWorker(options: WorkerOptions): Promise<JobEnd | null> {
  const { server, token, workerId, binaries, memoryBytes, transcriber, log, onProgress, isOnce = false } = options;
  const { encoder = "software", minFreeBytes = MIN_FREE_BYTES } = options;
  const { encoders, lacking } = await requireEncoder(binaries.ffmpeg, encoder, encodingSpec);
  if (lacking.length > 0)
    log.warn({ encoder, lacking }, "Codecs are encoded in software that the hardware does not encode.");
  const missing = await missingIsolation(binaries.ffmpeg);
  if (missing.length > 0) log.warn({ missing }, "ffmpeg cannot be fully sandboxed on this system.");
  log.info({ limits: await describeTotalLimits(binaries.ffmpeg) }, "ffmpeg has limits for each run.");
  const scratch = await openScratch(options.scratchDir);
  const fault = new AbortController();
  const signal = AbortSignal.any([options.signal, fault.signal]);
  const client = new LeaseClient({ server, token, workerId, version: options.version });
  const settings = { memoryBytes, minFreeBytes, encoders, transcriber, tracer: options.tracer };
  const sources = new SourceCache(() => scratch.jobFolder("source"));
  const context: JobContext = { client, binaries, ...settings, scratch, sources, log, signal, onProgress };
  try {
    const count = isOnce ? 1 : (options.concurrency ?? 1);
    const { sharedDisk } = options;
    const started = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => started.resolve(), { once: true });
    const common = { sharedDisk, isOnce, onTask: started.resolve };
    const loops = Array.from({ length: count }, (_, index) =>
      loop(context, { ...common, isFirst: index === 0, lane: "main" }),
    );
    // A chunk occupies all cores for a while; what is urgent, or uses one core, does not wait for its end. Not before the
    // first task: a server that returns none has no other lanes. A viewer waits for video and audio.
    for (const lane of isOnce ? [] : (["light", "urgent", "urgent"] as const))
      loops.push(started.promise.then(() => loop(context, { ...common, isFirst: false, lane })));
    // Recognition takes long, and an encode does not wait for its end.
    if (!isOnce && transcriber) loops.push(loop(context, { ...common, isFirst: false, lane: "captions" }));
    for (let index = 0; !isOnce && index < (options.liveEncodes ?? 0); index++) loops.push(liveLoop(context));
    // One refusal stops all loops, in order: jobs are released before scratch is deleted.
    for (const one of loops) one.catch(() => fault.abort());
    const ends = await Promise.allSettled(loops);
    const failed = ends.find((end) => end.status === "rejected");
    if (failed) throw failed.reason;
    return ends[0]?.status === "fulfilled" ? ends[0].value : null;
  } finally {
    await scratch.remove();
  }
}

type LoopOptions = {
  sharedDisk: WorkerOptions["sharedDisk"];
  isOnce: boolean;
  isFirst: boolean;
  lane: Lane;
  /** A task was leased. */
  onTask: () => void;
};

/** Requests and runs jobs of one lane, one after another, until the worker stops, or the server has no such lane. */
class Loop {
  readonly #context: JobContext;
  readonly #options: LoopOptions;
  #failures = 0;
  // The first request does not wait for a job, so that a person sees at once whether the server accepts the worker.
  #isConnected = false;
  /** The same until a request is answered: a repeated one gets the same lease. */
  #key: string = randomUUID();

  constructor(context: JobContext, options: LoopOptions) {
    this.#context = context;
    this.#options = options;
  }

  async run(): Promise<JobEnd | null> {
    const { scratch, minFreeBytes, log, signal } = this.#context;
    const { isOnce } = this.#options;
    while (!signal.aborted) {
      try {
        if (await scratch.hasSpace(minFreeBytes)) {
          const result = await this.#nextJob();
          if (result !== "continue") return result;
          continue;
        }
        if (isOnce) throw new UserError(`Almost no disk space is left in ${scratch.dir}.`);
        log.warn({ scratch: scratch.dir }, "Almost no disk space is left; not leasing jobs.");
        await pause(FULL_MS, signal);
      } catch (error) {
        if (signal.aborted || this.#isUnknownLane(error)) return null;
        await this.#failed(error);
      }
    }
    return null;
  }

  /** Requests a job and runs it. Returns what ends the loop, or "continue". */
  async #nextJob(): Promise<JobEnd | null | "continue"> {
    const { client, signal } = this.#context;
    const { isOnce, lane, onTask } = this.#options;
    const askedAt = performance.now();
    const isFirstAnswer = !this.#isConnected;
    const job = await this.#request();
    if (job && lane !== "main" && job.lane !== lane) {
      // A server of another version has no lanes, and would give this worker two jobs at once.
      await client.release(job);
      return null;
    }
    if (job?.task) onTask();
    const end = job && (await runJob(job, this.#context));
    if (isOnce) return end;
    if (end === "no_room") await pause(FULL_MS, signal);
    else if (!job && !isFirstAnswer) await pause(IDLE_MS - (performance.now() - askedAt), signal);
    return "continue";
  }

  async #request() {
    const { client, transcriber, log, signal } = this.#context;
    const { sharedDisk, isOnce, isFirst, lane } = this.#options;
    const job = await client.next({
      key: this.#key,
      capabilities: await capabilities(sharedDisk, {
        ...((isOnce || lane === "captions") && transcriber && { captions: CAPTIONS_VERSION }),
        ...(transcriber?.usesServerModel && { speech_model: true }),
      }),
      waitSeconds: this.#isConnected ? WAIT_SECONDS : 0,
      lane,
      signal,
    });
    this.#failures = 0;
    this.#key = randomUUID();
    if (isFirst && !this.#isConnected && !isOnce && !sharedDisk)
      // The server of a local worker has logged that it is serving.
      log.info({ server: client.server }, "Connected to the server; waiting for jobs.");
    this.#isConnected = true;
    return job;
  }

  /** Whether the server does not know the lane. */
  #isUnknownLane(error: unknown): boolean {
    const { lane, isOnce } = this.#options;
    const isNew = lane === "urgent" || lane === "captions";
    return !isOnce && isNew && error instanceof ServerRefused && error.status === 422;
  }

  /** Waits before the next request. Throws what no other request can change. */
  async #failed(error: unknown): Promise<void> {
    const { log, signal } = this.#context;
    if (this.#options.isOnce) throw error;
    if (error instanceof ServerRefused && (error.status === 401 || error.status === 403)) throw error;
    const isUnreachable = error instanceof ServerUnreachable;
    this.#failures++;
    this.#isConnected = false;
    // A server that was killed may have granted a lease before it answered.
    if (!isUnreachable) this.#key = randomUUID();
    // Logged once and then at intervals: a restarting server is normal.
    if (this.#failures % 30 === 1)
      log.warn({ error: String(error) }, isUnreachable ? "The server is unreachable." : "Job request failed.");
    await pause(backoffMs(this.#failures), signal);
  }
}

const loop = (context: JobContext, options: LoopOptions): Promise<JobEnd | null> => new Loop(context, options).run();

/**
 * What the worker supports. `local_proof` is a nonce that only a process on the server's disk can read. Read again each time, because a restarted server writes
 * another one.
 */
async function capabilities(
  sharedDisk: WorkerOptions["sharedDisk"],
  speech: Pick<NonNullable<Claim["capabilities"]>, "captions" | "speech_model">,
): Promise<NonNullable<Claim["capabilities"]>> {
  const versions = {
    tasks: TASKS_VERSION,
    clips: CLIPS_VERSION,
    joins: JOINS_VERSION,
    ...speech,
  };
  if (!sharedDisk) return versions;
  const proof = await readFile(join(sharedDisk.dataDir, "local-proof"), "utf8").catch(() => "");
  return { ...versions, ...(proof.trim() && { local_proof: proof.trim() }) };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => {});
}
