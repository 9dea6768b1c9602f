import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextIteration } from "node:timers/promises";
import type { InStatement, ResultSet, Value } from "@libsql/client";
import { setTimeout } from "#lib/base";
import { asStorageFull, CommitInDoubt, DatabaseBusy, isBusy, isStorageFailure, isUnreachable } from "./failures.ts";
import { backoff, LOCK_WAIT_MS } from "./wait.ts";

/** A group ends after this many works or this time, so that the event loop continues between groups. */
const GROUP_WORKS = 256;
const GROUP_MS = 5;
/** How long a work may wait for an unavailable remote server: enough for a restart. */
const AWAY_MS = 10_000;

/**
 * The connection that the queue writes to: a file, or a server. After a `fault` its transaction is lost and it must not
 * be used again.
 */
export type WriteConnection = {
  exec(sql: string): void;
  run(statement: InStatement): ResultSet | Promise<ResultSet>;
  values(statement: InStatement): Value[][] | Promise<Value[][]>;
  commit(): Promise<void>;
  close(): void;
  readonly inTransaction: boolean;
  readonly fault: Error | null;
  /** When the last statement ended, by `performance.now()`; undefined when statements do not block the event loop. */
  readonly answeredAt?: number;
};

export type WriteQueueOptions = {
  open: () => WriteConnection;
  groupMs?: number;
  /** A work that runs no statement for this long waits for something other than the database. */
  workLimitMs?: number;
  /** How long a work may wait while another process holds the write lock. */
  lockWaitMs?: number;
  /** Waits until no other process writes, if there are any. */
  writeLock?: (() => Promise<{ end(): void }>) | undefined;
  warn?: (fields: object, message: string) => void;
};

type Job = {
  run: () => Promise<unknown>;
  since: number;
  /** Must have its own transaction: the group it was in could not be committed. */
  alone: boolean;
  outcome: { value: unknown } | { error: unknown } | null;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
};

type GroupEnd = { end: "committed" } | { end: "busy" | "failed" | "in doubt"; error: unknown };

/**
 * The single writer of a database file. Queued works run one after another inside one transaction, each in its own
 * savepoint, and are settled when its COMMIT has returned: with `synchronous = FULL` a single sync of the disk serves
 * them all. A work contains only SQL: it may run twice (after SQLITE_BUSY, or when its group could not be committed),
 * and all other writes wait while it runs. A work that throws is rolled back alone. It is also settled after the
 * COMMIT, because its reason ("that slug is taken") may be a row of the same group that is not yet durable.
 */
export class WriteQueue {
  readonly #options: Required<Omit<WriteQueueOptions, "writeLock">> & Pick<WriteQueueOptions, "writeLock">;
  readonly #waiting: Job[] = [];
  /** Works that must run while no transaction is open. */
  readonly #between: (() => Promise<void>)[] = [];
  /** The work of the running code: distinguishes a late or foreign statement from one of the current work. */
  readonly #scope = new AsyncLocalStorage<Job>();
  #connection: WriteConnection | null = null;
  #current: Job | null = null;
  #lastStatementAt = 0;
  #running: Promise<void> | null = null;
  #closed = false;
  /** Committed transactions; incremented before any work is settled. */
  commits = 0;
  /** Their duration, mostly syncing the disk. */
  commitSeconds = 0;

  constructor(options: WriteQueueOptions) {
    this.#options = { groupMs: GROUP_MS, workLimitMs: 10_000, lockWaitMs: LOCK_WAIT_MS, warn: () => {}, ...options };
  }

  /**
   * Resolves when the writes of `work` are on disk. Throws StorageFull, DatabaseBusy, DatabaseAway, or errors of
   * `work`.
   */
  write<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new Error("The database is closed."));
    // It would wait for the transaction that waits for it.
    if (this.#scope.getStore()?.outcome === null) return Promise.reject(new Error("write() inside a write()."));
    return new Promise<T>((resolve, reject) => {
      const since = performance.now();
      this.#waiting.push({
        run: work,
        since,
        alone: false,
        outcome: null,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
      this.#running ??= this.#drain();
    });
  }

  /** Runs `work` between two transactions, of all processes: nothing is written to the database meanwhile. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#between.push(() => work().then(resolve, reject));
      this.#running ??= this.#drain();
    });
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** The connection, for a statement of the running work; throws for any other. */
  connectionOfWork(): WriteConnection {
    const job = this.#scope.getStore();
    if (job === undefined || job !== this.#current || this.#connection === null) {
      throw new Error("Statement outside of its write(): its transaction has ended.");
    }
    this.#lastStatementAt = performance.now();
    return this.#connection;
  }

  /** Completes queued works, then closes the connection. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    this.#drop();
  }

  async #drain(): Promise<void> {
    let busyTries = 0;
    while (this.#waiting.length > 0 || this.#between.length > 0) {
      // Also lets all requests of this event loop iteration join the group.
      await nextIteration();
      const group: Job[] = [];
      const lock = await this.#options.writeLock?.();
      const work = this.#between.shift();
      if (work) {
        await work().finally(() => lock?.end());
        continue;
      }
      const { end, error } = { error: undefined, ...(await this.#runGroup(group).finally(() => lock?.end())) };
      if (end === "committed") {
        busyTries = 0;
        for (const job of group) answer(job);
        continue;
      }
      this.#drop();
      for (const job of group) job.outcome = null;
      if (end === "busy") {
        this.#waiting.unshift(...group);
        this.#rejectAll(error);
        await backoff(busyTries++);
      } else if (end === "in doubt") {
        // Cached values may be old.
        this.commits++;
        for (const job of group) job.reject(error);
      } else if (group.length === 1) {
        group[0]?.reject(isStorageFailure(error) ? asStorageFull(error) : error);
      } else {
        // One of them is at fault, or together they did not fit: each is retried alone.
        for (const job of group) job.alone = true;
        this.#waiting.unshift(...group);
      }
    }
    this.#running = null;
  }

  /** Runs queued works in one transaction and moves them to `group`; the caller settles them. */
  async #runGroup(group: Job[]): Promise<GroupEnd> {
    const started = performance.now();
    try {
      this.#connection ??= this.#options.open();
      this.#connection.exec("BEGIN IMMEDIATE");
    } catch (error) {
      group.push(...this.#waiting.splice(0, 1));
      return ended(error);
    }
    const connection = this.#connection;
    try {
      do {
        const job = this.#waiting.shift() as Job;
        group.push(job);
        await this.#runWork(connection, job);
      } while (
        this.#waiting.length > 0 &&
        !group[0]?.alone &&
        !this.#waiting[0]?.alone &&
        group.length < GROUP_WORKS &&
        performance.now() - started < this.#options.groupMs
      );
      const from = performance.now();
      await connection.commit();
      this.commitSeconds += (performance.now() - from) / 1000;
      this.commits++;
      return { end: "committed" };
    } catch (error) {
      return ended(connection.fault ?? error);
    }
  }

  /** Runs one work in a savepoint and records its result. Throws when the whole transaction is lost. */
  async #runWork(connection: WriteConnection, job: Job): Promise<void> {
    connection.exec("SAVEPOINT work");
    let outcome: Job["outcome"];
    this.#current = job;
    try {
      outcome = { value: await this.#limited(job) };
    } catch (error) {
      outcome = { error };
    }
    this.#current = null;
    // A work may have caught the error itself; the connection records it.
    if (connection.fault) throw connection.fault;
    // SQLite ends the whole transaction on some errors, including the works before this one.
    if (!connection.inTransaction)
      throw "error" in outcome ? outcome.error : new Error("A write callback ended its transaction.");
    connection.exec("error" in outcome ? "ROLLBACK TO work; RELEASE work" : "RELEASE work");
    job.outcome = outcome;
  }

  /** Only idle time is limited, not duration: a long work that yields between its statements may continue. */
  #limited(job: Job): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const limitMs = this.#options.workLimitMs;
      this.#lastStatementAt = performance.now();
      const look = () => {
        const since = Math.max(this.#lastStatementAt, this.#connection?.answeredAt ?? 0);
        const leftMs = since + limitMs - performance.now();
        if (leftMs > 0) timer = setTimeout(look, leftMs);
        else reject(new Error(`A write callback ran no SQL for ${limitMs} ms: it must not wait for anything else.`));
      };
      let timer = setTimeout(look, limitMs);
      this.#scope
        .run(job, async () => job.run())
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }

  #rejectAll(error: unknown): void {
    const now = performance.now();
    const away = isUnreachable(error);
    const limitMs = away ? Math.min(AWAY_MS, this.#options.lockWaitMs) : this.#options.lockWaitMs;
    for (const job of this.#waiting.splice(0)) {
      if (now - job.since < limitMs) this.#waiting.push(job);
      else job.reject(away ? error : new DatabaseBusy(now - job.since, error));
    }
    const { message } = away ? (error as Error) : { message: "another process holds the database's write lock" };
    this.#options.warn({ waiting: this.#waiting.length }, message);
  }

  #drop(): void {
    this.#connection?.close();
    this.#connection = null;
  }
}

function ended(error: unknown): GroupEnd {
  if (error instanceof CommitInDoubt) return { end: "in doubt", error };
  return { end: isBusy(error) || isUnreachable(error) ? "busy" : "failed", error };
}

function answer(job: Job): void {
  if (job.outcome === null) throw new Error("A write of a committed group has no outcome.");
  if ("error" in job.outcome) job.reject(job.outcome.error);
  else job.resolve(job.outcome.value);
}
