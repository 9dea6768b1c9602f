import * as v from "valibot";
import { abortAfter, sleep, withoutTrailing } from "#lib/base";
import { describeConnectionError, isCertificateError } from "#lib/network";
import { activeTraceparent, TRACEPARENT } from "#lib/tracing";
import { type LiveClaim, LiveContract } from "#protocol/live-encode.ts";
import { PartPage } from "#protocol/speech.ts";
import type { Claim, Heartbeat, Lane, SignArtifacts } from "#protocol/worker.ts";
import {
  type Completion,
  type Failure,
  HeartbeatAnswer,
  type SignedArtifact,
  SignedArtifacts,
  type SpeechCompletion,
  type Stage,
  type TaskResult,
  WorkerContract,
} from "#protocol/worker-client.ts";

/** The server says that this attempt has lost its lease: its results are discarded. */
export class LeaseLost extends Error {
  constructor() {
    super("The lease is lost.");
    this.name = "LeaseLost";
  }
}

/** A response that a retry would not change. */
export class ServerRefused extends Error {
  readonly status: number;
  constructor(status: number, body: string) {
    super(`The server answered ${status}: ${body.slice(0, 500)}`);
    this.name = "ServerRefused";
    this.status = status;
  }
}

/** The server could not be reached, or kept answering 5xx or 429. */
export class ServerUnreachable extends Error {
  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = "ServerAway";
  }
}

type CallOptions = {
  /** Without one it is a GET. */
  body?: unknown;
  lease?: string;
  idempotencyKey?: string;
  /** Sends the trace that the job belongs to: what the request causes is a part of it. */
  isTraced?: boolean;
  signal?: AbortSignal | undefined;
  attempts: number;
  timeoutMs: number;
};

const CALL_TIMEOUT_MS = 30_000;
/**
 * Retries for ten minutes while a server is down: encodes take longer. The heartbeat ends it when the lease is lost.
 */
export const LONG_RETRY = 64;
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 10_000;

/** The client of the worker API. Connection errors, 5xx and 429 are retried; any other error is final. */
export class LeaseClient {
  readonly server: string;
  readonly token: () => string;
  readonly workerId: string;
  readonly version: string | undefined;
  /** The prefix of the server's own URLs. */
  #base = "";
  constructor(options: { server: string; token: () => string; workerId: string; version?: string | undefined }) {
    this.server = withoutTrailing(options.server, "/");
    this.token = options.token;
    this.workerId = options.workerId;
    this.version = options.version;
  }

  /**
   * The next job, or null. `waitSeconds` lets the server hold the request until there is one. `key`: of this claim; with
   * the same one after ServerUnreachable, a lease is not lost whose answer was.
   */
  async next(options: {
    key: string;
    capabilities: NonNullable<Claim["capabilities"]>;
    waitSeconds: number;
    lane?: Lane;
    signal?: AbortSignal;
  }): Promise<WorkerContract | null> {
    const { key, capabilities, waitSeconds, lane = "main" } = options;
    const { workerId, version } = this;
    const body: Claim = { worker_id: workerId, version, capabilities, wait_seconds: waitSeconds, lane };
    const answer = await this.#call("/api/v1/transcoding_jobs/next", {
      body,
      idempotencyKey: key,
      signal: options.signal,
      attempts: 3,
      timeoutMs: CALL_TIMEOUT_MS + waitSeconds * 1000,
    });
    if (answer === null) return null;
    const job = v.parse(WorkerContract, answer);
    this.#base = job.callbacks.heartbeat_url.split("/api/v1/", 1)[0] ?? "";
    return job;
  }

  /** The renditions of a live stream, or null. Throws as `next`. */
  async nextLive({ waitSeconds, signal }: { waitSeconds: number; signal: AbortSignal }): Promise<LiveContract | null> {
    const body: LiveClaim = { worker_id: this.workerId, version: this.version, wait_seconds: waitSeconds };
    const timeoutMs = CALL_TIMEOUT_MS + waitSeconds * 1000;
    const answer = await this.#call("/api/v1/worker/live/next", { body, signal, attempts: 1, timeoutMs });
    if (answer === null) return null;
    const contract = v.parse(LiveContract, answer);
    this.#base = contract.input_url.split("/api/v1/", 1)[0] ?? "";
    return contract;
  }

  /** A request whose body or response lasts as long as a live stream. Throws ServerUnreachable and ServerRefused. */
  async stream(address: string, { lease, ...init }: RequestInit & { lease: string }): Promise<Response> {
    const headers = { "x-svc-worker-token": this.token(), "x-svc-job-lease-token": lease, "content-type": "video/mp4" };
    const response = await request(this.resolve(address), { ...init, headers, redirect: "error" });
    if (!response.ok) check(response, await response.text());
    return response;
  }

  async heartbeat(
    job: WorkerContract,
    report: { progress: number; stage: Stage; log_tail?: string },
    signal?: AbortSignal,
  ): Promise<HeartbeatAnswer> {
    const body: Heartbeat = { ...report, worker_id: this.workerId };
    // Without retries: the next heartbeat follows soon, with newer data.
    const limit = Math.max(2000, job.lease.heartbeat_interval_seconds * 1000);
    const options = { body, lease: job.lease.token, signal, attempts: 1, timeoutMs: Math.min(CALL_TIMEOUT_MS, limit) };
    return v.parse(HeartbeatAnswer, await this.#call(job.callbacks.heartbeat_url, options));
  }

  async complete(
    job: WorkerContract,
    completion: Completion | TaskResult | SpeechCompletion,
    signal?: AbortSignal,
  ): Promise<void> {
    const options = {
      body: completion,
      isTraced: true,
      lease: job.lease.token,
      signal,
      attempts: LONG_RETRY,
      timeoutMs: CALL_TIMEOUT_MS,
    };
    await this.#call(job.callbacks.complete_url, options);
  }

  /** Reports what is playable, while the rest is encoded. */
  async publish(job: WorkerContract, completion: Completion, signal?: AbortSignal): Promise<void> {
    const options = {
      body: completion,
      isTraced: true,
      lease: job.lease.token,
      signal,
      attempts: LONG_RETRY,
      timeoutMs: CALL_TIMEOUT_MS,
    };
    await this.#call(job.callbacks.publish_url ?? "", options);
  }

  async fail(job: WorkerContract, failure: Failure, signal?: AbortSignal): Promise<void> {
    const options = {
      body: failure,
      isTraced: true,
      lease: job.lease.token,
      signal,
      attempts: 5,
      timeoutMs: CALL_TIMEOUT_MS,
    };
    await this.#call(job.callbacks.fail_url, options);
  }

  /** Releases the job. Without long retries, because it is called while the process stops. */
  async release(job: WorkerContract): Promise<void> {
    await this.#call(job.callbacks.release_url, { body: {}, lease: job.lease.token, attempts: 2, timeoutMs: 3000 });
  }

  /** URLs to PUT `paths` (full keys, at most 100) to, or to GET them from. */
  async sign(
    job: WorkerContract,
    paths: string[],
    signal?: AbortSignal,
    method: "PUT" | "GET" = "PUT",
  ): Promise<SignedArtifact[]> {
    const body: SignArtifacts = { paths, method };
    const options = {
      body,
      lease: job.lease.token,
      signal,
      attempts: LONG_RETRY,
      timeoutMs: CALL_TIMEOUT_MS,
    };
    return v.parse(SignedArtifacts, await this.#call(job.artifacts.sign_url, options));
  }

  /** Reads an object that another task of this job has written, such as a segment. */
  async read(job: WorkerContract, path: string, signal: AbortSignal): Promise<Buffer> {
    const body: SignArtifacts = { paths: [path], method: "GET" };
    const options = { body, lease: job.lease.token, signal, attempts: LONG_RETRY, timeoutMs: CALL_TIMEOUT_MS };
    const [signed] = v.parse(SignedArtifacts, await this.#call(job.artifacts.sign_url, options));
    if (!signed) throw new Error(`The server returned no presigned URL for ${path}.`);
    return this.fetch(signed, signal);
  }

  /** What was recognized in the parts of a job, which is leased to join them, in order. */
  async *parts(job: WorkerContract, signal: AbortSignal): AsyncGenerator<PartPage["parts"][number]> {
    const options = { lease: job.lease.token, signal, attempts: LONG_RETRY, timeoutMs: CALL_TIMEOUT_MS };
    for (let url = job.speech?.parts_url ?? null; url !== null; ) {
      const page: PartPage = v.parse(PartPage, await this.#call(url, options));
      yield* page.parts;
      url = page.next;
    }
  }

  /** Reads an object by its presigned URL. */
  async fetch(signed: Omit<SignedArtifact, "path">, signal: AbortSignal): Promise<Buffer> {
    return retrying({ attempts: LONG_RETRY, signal }, async () => {
      const { url, method, headers } = signed;
      const response = await request(this.resolve(url), { method, headers, signal });
      if (!response.ok) check(response, await response.text());
      return Buffer.from(await response.arrayBuffer());
    });
  }

  /** The body of a file that the server itself has, at most `maxBytes`. */
  async download(address: string, { signal, maxBytes }: { signal: AbortSignal; maxBytes: number }): Promise<Buffer> {
    return retrying({ attempts: LONG_RETRY, signal }, async () => {
      const headers = { "x-svc-worker-token": this.token() };
      const limit = withTimeout(CALL_TIMEOUT_MS, signal);
      const response = await request(this.resolve(address), { headers, redirect: "error", signal: limit });
      if (!response.ok) check(response, await response.text());
      const bytes = Buffer.from(await response.arrayBuffer());
      if (bytes.length > maxBytes) throw new ServerRefused(413, `The file has ${bytes.length} bytes.`);
      return bytes;
    });
  }

  /**
   * The server's URLs begin with its public base URL, which may be unreachable from here (a proxy's, for example):
   * their origin is replaced by the one that this worker uses. Other URLs, such as an object store's, are unchanged.
   */
  resolve(address: string): string {
    const path = this.#base !== "" && address.startsWith(`${this.#base}/`) ? address.slice(this.#base.length) : address;
    return path.startsWith("/") ? this.server + path : new URL(path, `${this.server}/`).href;
  }

  async #call(address: string, options: CallOptions): Promise<unknown> {
    const url = this.resolve(address);
    const traceparent = options.isTraced ? activeTraceparent() : null;
    const headers = (): Record<string, string> => ({
      "content-type": "application/json",
      "x-svc-worker-token": this.token(),
      ...(options.lease && { "x-svc-job-lease-token": options.lease }),
      ...(options.idempotencyKey && { "idempotency-key": options.idempotencyKey }),
      ...(traceparent !== null && { [TRACEPARENT]: traceparent }),
    });
    return retrying({ attempts: options.attempts, signal: options.signal }, async () => {
      const response = await request(url, {
        method: options.body === undefined ? "GET" : "POST",
        headers: headers(),
        ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
        // The tokens in the headers are for this server only.
        redirect: "error",
        signal: withTimeout(options.timeoutMs, options.signal),
      });
      const text = await response.text();
      if (response.status === 409) throw new LeaseLost();
      check(response, text);
      return response.status === 204 || text === "" ? null : JSON.parse(text);
    });
  }
}

/** fetch, with every failure to get a response converted to ServerAway. */
export async function request(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    // Its cause would be logged too, and mentions flags of Node.js that an executable does not accept.
    throw new ServerUnreachable(
      describeConnectionError(new URL(url).origin, error),
      isCertificateError(error) ? {} : { cause: error },
    );
  }
}

/** Throws ServerAway for temporary errors and ServerRefused for permanent ones. */
export function check(response: Response, text: string): void {
  if (response.ok) return;
  if (response.status >= 500 || response.status === 429 || response.status === 408) {
    throw new ServerUnreachable(`The server answered ${response.status}.`, { cause: retryAfterMs(response) });
  }
  throw new ServerRefused(response.status, text);
}

/** Retries `work` while it throws ServerAway; waits 0.2 s, 0.4 s … 10 s, or as Retry-After says. */
export async function retrying<T>(
  options: { attempts: number; signal?: AbortSignal | undefined },
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ServerUnreachable) || attempt >= options.attempts || options.signal?.aborted) throw error;
      const retryAfterMs = typeof error.cause === "number" ? error.cause : 0;
      await sleep(
        Math.max(retryAfterMs, backoffMs(attempt)),
        undefined,
        options.signal ? { signal: options.signal } : {},
      );
    }
  }
}

/** Half of it random, so that a fleet does not return in step after an outage. */
export function backoffMs(attempt: number): number {
  const whole = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1));
  return whole / 2 + (Math.random() * whole) / 2;
}

export const withTimeout = (timeoutMs: number, signal?: AbortSignal) =>
  signal ? AbortSignal.any([signal, abortAfter(timeoutMs)]) : abortAfter(timeoutMs);

function retryAfterMs(response: Response): number | undefined {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? Math.min(60, Math.max(0, seconds)) * 1000 : undefined;
}
