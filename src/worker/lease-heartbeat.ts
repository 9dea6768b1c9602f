import { setTimeout } from "#lib/base";
import type { Stage, WorkerContract } from "#protocol/worker-client.ts";
import { JobLog } from "./job-log.ts";
import { type LeaseClient, LeaseLost, ServerRefused } from "./lease-client.ts";

/** Changes are sent at most this often; without changes a heartbeat is sent at the contract's interval. */
const PROGRESS_INTERVAL_MS = 1000;
/** For a chunk that may have to yield to a viewer, also while it is suspended and makes no progress. */
const YIELD_INTERVAL_MS = 2000;

/** How often, and by which part of what is left, progress moves on while nothing more is known. */
const ADVANCE_INTERVAL_MS = 60_000;
const ADVANCE_SHARE = 100;

/** Hundredths of a percent are counted, and rounded down. Ten hours of such work take 7 % of the progress. */
const MOVE_STEP = 0.012;
const MOVE_MOST = 99.9;

/** `full`: a disk that the job writes to has reached its reserve. */
type EndReason = "stopped" | "canceled" | "lost" | "full";

type LeaseHeartbeatOptions = {
  signal: AbortSignal;
  onTrouble: (error: unknown) => void;
  /** A stage has ended. */
  onStage?: (stage: Stage, tookMs: number) => void;
  /** Another stage, or another percent. */
  onNews?: (stage: Stage, progress: number) => void;
};

/**
 * Keeps a lease alive and reports progress. The job's work listens to its `signal`, which aborts when the worker stops,
 * when the server cancels the job and when the lease is lost; `reason` says which.
 */
export class LeaseHeartbeat {
  reason: EndReason | null = null;
  readonly signal: AbortSignal;
  /** Aborts when the server asks to complete a chunk early. */
  readonly yielding: AbortSignal;
  readonly #yielding = new AbortController();
  readonly #controller = new AbortController();
  readonly #ended = new AbortController();
  readonly #client: LeaseClient;
  readonly #job: WorkerContract;
  readonly #onTrouble: (error: unknown) => void;
  readonly #outer: AbortSignal;
  readonly #options: LeaseHeartbeatOptions;
  readonly #log = new JobLog();
  #stageSinceMs = performance.now();
  readonly #onOuter = () => this.#abort("stopped");
  #progress = 0;
  #advancedMs = performance.now();
  #stage: Stage;
  #hasNews = true;
  #lastBeatMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> | null = null;

  constructor(client: LeaseClient, job: WorkerContract, options: LeaseHeartbeatOptions) {
    this.#client = client;
    this.#job = job;
    this.#onTrouble = options.onTrouble;
    this.#outer = options.signal;
    this.#options = options;
    // What lies on this disk is not downloaded.
    this.#stage = job.source.local_path ? "probing" : "downloading";
    this.signal = this.#controller.signal;
    this.yielding = this.#yielding.signal;
    this.#log.add(this.#stage);
    if (options.signal.aborted) this.#abort("stopped");
    options.signal.addEventListener("abort", this.#onOuter, { once: true });
    this.#plan();
  }

  /**
   * Work whose length is not known continues: progress comes closer to `until`, but does not reach it for hours. A source of
   * hundreds of gigabytes takes longer to read than a job may be without progress.
   */
  advance(stage: Stage, until: number): void {
    const now = performance.now();
    if (now - this.#advancedMs < ADVANCE_INTERVAL_MS) return;
    this.#advancedMs = now;
    this.report(stage, this.#progress + (until - this.#progress) / ADVANCE_SHARE);
  }

  /** The same within a stage: something was read, decoded or uploaded that has no share of the progress. */
  move(): void {
    const now = performance.now();
    if (now - this.#advancedMs < ADVANCE_INTERVAL_MS) return;
    this.#advancedMs = now;
    this.report(this.#stage, Math.min(MOVE_MOST, this.#progress + MOVE_STEP));
  }

  /** Progress is 0 to 100 and never decreases. */
  report(stage: Stage, progress: number): void {
    const exact = Math.max(this.#progress, Math.min(100, progress));
    const isNews = stage !== this.#stage || Math.floor(exact) !== Math.floor(this.#progress);
    if (stage !== this.#stage) {
      this.#endStage();
      this.#log.add(stage);
    }
    this.#stage = stage;
    this.#progress = exact;
    if (!isNews) return;
    this.#options.onNews?.(stage, exact);
    this.#hasNews = true;
    this.#plan();
  }

  /** Adds a line to the log, which the next heartbeat sends. */
  logLine(line: string): void {
    this.#log.add(line);
  }

  #endStage(): void {
    const now = performance.now();
    // A stage in which nothing had to be done is not reported.
    if (now - this.#stageSinceMs >= 1) this.#options.onStage?.(this.#stage, now - this.#stageSinceMs);
    this.#stageSinceMs = now;
  }

  /** When this resolves, no heartbeat is in progress, and none follows. */
  async stop(): Promise<void> {
    if (!this.#ended.signal.aborted && this.#progress === 100) this.#endStage();
    clearTimeout(this.#timer);
    this.#outer.removeEventListener("abort", this.#onOuter);
    this.#ended.abort();
    await this.#beating;
  }

  #plan(): void {
    if (this.#beating || this.#ended.signal.aborted || this.#controller.signal.aborted) return;
    clearTimeout(this.#timer);
    const { task, lease } = this.#job;
    const mayYield = task?.kind === "chunk" && task.chunk?.is_urgent === false;
    const longest = lease.heartbeat_interval_seconds * 1000;
    const interval = mayYield ? Math.min(longest, YIELD_INTERVAL_MS) : longest;
    const due = this.#lastBeatMs + (this.#hasNews ? Math.min(PROGRESS_INTERVAL_MS, interval) : interval);
    this.#timer = setTimeout(() => this.#beat(), Math.max(0, due - performance.now()));
  }

  #beat(): void {
    this.#hasNews = false;
    this.#lastBeatMs = performance.now();
    this.#beating = this.#tell().finally(() => {
      this.#beating = null;
      this.#plan();
    });
  }

  async #tell(): Promise<void> {
    try {
      // In hundredths of a percent: an encode of a day-long video advances by less than one percent in an hour, and a
      // job without progress is considered dead.
      const log = this.#log.unsent();
      const report = {
        progress: Math.floor(this.#progress * 100) / 100,
        stage: this.#stage,
        ...(log !== null && { log_tail: log }),
      };
      const answer = await this.#client.heartbeat(this.#job, report, this.#ended.signal);
      if (log !== null) this.#log.markSent(log);
      // Requests that begin from now on use it.
      if (answer.source_url !== undefined) this.#job.source.url = answer.source_url;
      if (answer.cancel_requested) this.#abort("canceled");
      if (answer.yield_requested) this.#yielding.abort();
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      const isGone = error instanceof ServerRefused && (error.status === 404 || error.status === 410);
      if (error instanceof LeaseLost || isGone) return this.#abort("lost");
      // A restarting server must not cost the work so far: only its own response ends the lease.
      this.#hasNews = true;
      this.#onTrouble(error);
    }
  }

  /** Aborts the job's work for a reason that the worker detected. */
  abandon(reason: "full"): void {
    this.#abort(reason);
  }

  #abort(reason: EndReason): void {
    this.reason ??= reason;
    this.#controller.abort();
  }
}
