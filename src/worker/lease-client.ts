import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { describeConnectionError, isCertificateError } from "../lib/connection-errors.ts";
import { withoutTrailing } from "../lib/without-trailing.ts";
import {
  type Completion,
  type Failure,
  HeartbeatAnswer,
  type SignedArtifact,
  SignedArtifacts,
  type Stage,
  WorkerContract,
} from "./contract.ts";

/** The server says that this attempt is no longer ours: whatever we made is to be dropped. */
export class LeaseLost extends Error {
  constructor() {
    super("The lease is lost.");
    this.name = "LeaseLost";
  }
}

/** An answer that asking again would not change. */
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
  body: unknown;
  lease?: string;
  idempotencyKey?: string;
  signal?: AbortSignal | undefined;
  attempts: number;
  timeoutMs: number;
};

const CALL_TIMEOUT_MS = 30_000;
/** Ten minutes of a server that is away, if it must be: encodes take longer. The heart ends it when the lease is lost. */
export const LONG_RETRY = 64;
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 10_000;

/** Speaks the worker contract. Connection errors, 5xx and 429 are tried again; any other refusal is final. */
export class LeaseClient {
  readonly server: string;
  readonly token: () => string;
  readonly workerId: string;
  /** What the server's own addresses begin with. */
  #base = "";
  constructor(options: { server: string; token: () => string; workerId: string }) {
    this.server = withoutTrailing(options.server, "/");
    this.token = options.token;
    this.workerId = options.workerId;
  }

  /**
   * The next job, or null when there is none. `waitSeconds` lets the server hold the request until one appears.
   * A repeat after a torn connection carries the same key, so that a lease granted meanwhile is not lost.
   */
  async next(options: {
    capabilities: Record<string, string>;
    waitSeconds: number;
    signal?: AbortSignal;
  }): Promise<WorkerContract | null> {
    const answer = await this.#call("/api/v1/transcoding_jobs/next", {
      body: { worker_id: this.workerId, capabilities: options.capabilities, wait_seconds: options.waitSeconds },
      idempotencyKey: randomUUID(),
      signal: options.signal,
      attempts: 3,
      timeoutMs: CALL_TIMEOUT_MS + options.waitSeconds * 1000,
    });
    if (answer === null) return null;
    const job = v.parse(WorkerContract, answer);
    this.#base = job.callbacks.heartbeat_url.split("/api/v1/", 1)[0] ?? "";
    return job;
  }

  async heartbeat(
    job: WorkerContract,
    report: { progress: number; stage: Stage },
    signal?: AbortSignal,
  ): Promise<HeartbeatAnswer> {
    const body = { progress: report.progress, stage: report.stage, worker_id: this.workerId };
    // One try: the next heartbeat is the retry, with fresher news.
    const limit = Math.max(2000, job.lease.heartbeat_interval_seconds * 1000);
    const options = { body, lease: job.lease.token, signal, attempts: 1, timeoutMs: Math.min(CALL_TIMEOUT_MS, limit) };
    return v.parse(HeartbeatAnswer, await this.#call(job.callbacks.heartbeat_url, options));
  }

  async complete(job: WorkerContract, completion: Completion, signal?: AbortSignal): Promise<void> {
    const options = {
      body: completion,
      lease: job.lease.token,
      signal,
      attempts: LONG_RETRY,
      timeoutMs: CALL_TIMEOUT_MS,
    };
    await this.#call(job.callbacks.complete_url, options);
  }

  /** What plays already, while the rest is made. */
  async publish(job: WorkerContract, completion: Completion, signal?: AbortSignal): Promise<void> {
    const options = {
      body: completion,
      lease: job.lease.token,
      signal,
      attempts: LONG_RETRY,
      timeoutMs: CALL_TIMEOUT_MS,
    };
    await this.#call(job.callbacks.publish_url ?? "", options);
  }

  async fail(job: WorkerContract, failure: Failure, signal?: AbortSignal): Promise<void> {
    const options = { body: failure, lease: job.lease.token, signal, attempts: 5, timeoutMs: CALL_TIMEOUT_MS };
    await this.#call(job.callbacks.fail_url, options);
  }

  /** Gives the job back. Quick: it is called while the process is on its way out. */
  async release(job: WorkerContract): Promise<void> {
    await this.#call(job.callbacks.release_url, { body: {}, lease: job.lease.token, attempts: 2, timeoutMs: 3000 });
  }

  /** Addresses to PUT `paths` (whole keys, at most 100) to. */
  async sign(job: WorkerContract, paths: string[], signal?: AbortSignal): Promise<SignedArtifact[]> {
    const options = {
      body: { paths },
      lease: job.lease.token,
      signal,
      attempts: LONG_RETRY,
      timeoutMs: CALL_TIMEOUT_MS,
    };
    return v.parse(SignedArtifacts, await this.#call(job.artifacts.sign_url, options));
  }

  /**
   * The server's addresses begin with the name that viewers know it by, which may lead nowhere from here (a proxy's, say):
   * they are asked for where we found the server. Others, such as an object store's, are left alone.
   */
  resolve(address: string): string {
    const path = this.#base !== "" && address.startsWith(`${this.#base}/`) ? address.slice(this.#base.length) : address;
    return path.startsWith("/") ? this.server + path : new URL(path, `${this.server}/`).href;
  }

  async #call(address: string, options: CallOptions): Promise<unknown> {
    const url = this.resolve(address);
    const headers = (): Record<string, string> => ({
      "content-type": "application/json",
      "x-svc-worker-token": this.token(),
      ...(options.lease && { "x-svc-job-lease-token": options.lease }),
      ...(options.idempotencyKey && { "idempotency-key": options.idempotencyKey }),
    });
    return retrying({ attempts: options.attempts, signal: options.signal }, async () => {
      const response = await request(url, {
        method: "POST",
        headers: headers(),
        body: JSON.stringify(options.body),
        // The tokens in the headers are meant for this server and no other.
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

/** As fetch, with every failure to get an answer told as ServerAway. */
export async function request(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    // Its cause would be logged with it, and Node.js tells there of flags that nobody can give us.
    throw new ServerUnreachable(
      describeConnectionError(new URL(url).origin, error),
      isCertificateError(error) ? {} : { cause: error },
    );
  }
}

/** Throws ServerAway for what may pass and ServerRefused for what will not. */
export function check(response: Response, text: string): void {
  if (response.ok) return;
  if (response.status >= 500 || response.status === 429 || response.status === 408) {
    throw new ServerUnreachable(`The server answered ${response.status}.`, { cause: retryAfterMs(response) });
  }
  throw new ServerRefused(response.status, text);
}

/** Calls `work` until it does anything but throw ServerAway; waits 0.2 s, 0.4 s … 10 s, or as Retry-After says. */
export async function retrying<T>(
  options: { attempts: number; signal?: AbortSignal | undefined },
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ServerUnreachable) || attempt >= options.attempts || options.signal?.aborted) throw error;
      const asked = typeof error.cause === "number" ? error.cause : 0;
      await sleep(Math.max(asked, backoffMs(attempt)), undefined, options.signal ? { signal: options.signal } : {});
    }
  }
}

/** Half of it by chance, so that a fleet does not come back in step after an outage. */
export function backoffMs(attempt: number): number {
  const whole = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1));
  return whole / 2 + (Math.random() * whole) / 2;
}

export const withTimeout = (timeoutMs: number, signal?: AbortSignal) =>
  signal ? AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) : AbortSignal.timeout(timeoutMs);

function retryAfterMs(response: Response): number | undefined {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? Math.min(60, Math.max(0, seconds)) * 1000 : undefined;
}
