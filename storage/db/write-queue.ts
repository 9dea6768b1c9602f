import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import type { InStatement, ResultSet } from "@libsql/client";
import { asStorageFull, CommitInDoubt, DatabaseBusy, isBusy, isStorageFailure, isUnreachable } from "./failures.ts";
import { backoff, LOCK_WAIT_MS } from "./wait.ts";

/** A group ends at this many works or after this long, so that the event loop turns between groups. */
const GROUP_WORKS = 256;
const GROUP_MS = 5;
/** How long a work may wait for a remote server that is away: time enough to start it again. */
const AWAY_MS = 10_000;

/** What the queue writes through: a file, or a server. With a `fault` its transaction is lost and it is of no more use. */
export type WriteConnection = {
  exec(sql: string): void;
  run(statement: InStatement): ResultSet | Promise<ResultSet>;
  commit(): Promise<void>;
  close(): void;
  readonly inTransaction: boolean;
  readonly fault: Error | null;
  /** Until when a statement was under way, by `performance.now()`; nothing where they take no time of the event loop's. */
  readonly answeredAt?: number;
};

export type WriteQueueOptions = {
  open: () => WriteConnection;
  groupMs?: number;
  /** A work that runs no statement for longer waits for something that is not the database. */
  workLimitMs?: number;
  /** How long a work may wait while another process holds the write lock. */
  lockWaitMs?: number;
  /** Waits until no other process writes, where there are such. */
  turn?: (() => Promise<{ end(): void }>) | undefined;
  warn?: (fields: object, message: string) => void;
};

type Job = {
  run: () => Promise<unknown>;
  since: number;
  /** Must have a transaction to itself: the group it was in could not be committed. */
  alone: boolean;
  outcome: { value: unknown } | { error: unknown } | null;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
};

type GroupEnd = { end: "committed" } | { end: "busy" | "failed" | "in doubt"; error: unknown };

/**
 * The one writer of a database file. Works that wait are run one after another inside one transaction, each in a
 * savepoint of its own, and are answered when its COMMIT has returned: with `synchronous = FULL` one sync of the disk
 * then serves them all.
 *
 * A work holds SQL and nothing else: it may run twice (after SQLITE_BUSY, or when its group could not be committed),
 * and everybody waits while it runs. A work that throws is rolled back alone. It, too, is answered after the COMMIT:
 * its reason ("that slug is taken") may rest on a row of the same group that is not yet stored.
 */
export class WriteQueue {
  readonly #options: Required<Omit<WriteQueueOptions, "turn">> & Pick<WriteQueueOptions, "turn">;
  readonly #waiting: Job[] = [];
  /** Which work the running code belongs to: tells a late or foreign statement from one of the current work. */
  readonly #scope = new AsyncLocalStorage<Job>();
  #connection: WriteConnection | null = null;
  #current: Job | null = null;
  #lastStatementAt = 0;
  #running: Promise<void> | null = null;
  #closed = false;
  /** Transactions that were committed; changes before anyone is answered. */
  commits = 0;
  /** What they took, the sync of the disk above all. */
  commitSeconds = 0;

  constructor(options: WriteQueueOptions) {
    this.#options = { groupMs: GROUP_MS, workLimitMs: 10_000, lockWaitMs: LOCK_WAIT_MS, warn: () => {}, ...options };
  }

  /** Resolves when what `work` wrote is on the disk. Throws StorageFull, DatabaseBusy, DatabaseAway, or what `work` threw. */
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

  get waiting(): number {
    return this.#waiting.length;
  }

  /** The connection, for a statement of the work that is running now; throws for any other. */
  connectionOfWork(): WriteConnection {
    const job = this.#scope.getStore();
    if (job === undefined || job !== this.#current || this.#connection === null) {
      throw new Error("A statement outside of its write(): the transaction it belongs to has ended.");
    }
    this.#lastStatementAt = performance.now();
    return this.#connection;
  }

  /** Finishes what waits, then closes the connection. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    this.#drop();
  }

  async #drain(): Promise<void> {
    let busyTries = 0;
    while (this.#waiting.length > 0) {
      // Also lets every request of this turn of the event loop join the group.
      await turn();
      const group: Job[] = [];
      const mine = await this.#options.turn?.();
      const { end, error } = { error: undefined, ...(await this.#runGroup(group).finally(() => mine?.end())) };
      if (end === "committed") {
        busyTries = 0;
        for (const job of group) answer(job);
        continue;
      }
      this.#drop();
      for (const job of group) job.outcome = null;
      if (end === "busy") {
        this.#waiting.unshift(...group);
        this.#giveUp(error);
        await backoff(busyTries++);
      } else if (end === "in doubt") {
        // What is remembered may be old.
        this.commits++;
        for (const job of group) job.reject(error);
      } else if (group.length === 1) {
        group[0]?.reject(isStorageFailure(error) ? asStorageFull(error) : error);
      } else {
        // One of them is at fault, or together they did not fit: each shows for itself.
        for (const job of group) job.alone = true;
        this.#waiting.unshift(...group);
      }
    }
    this.#running = null;
  }

  /** Runs waiting works in one transaction and moves them to `group`; they are answered by the caller. */
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

  /** Runs one work in a savepoint and notes its outcome. Throws when the whole transaction is lost. */
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
    // A work may have caught the error itself; the connection remembers.
    if (connection.fault) throw connection.fault;
    // SQLite ends the whole transaction on some errors; with it went the works before this one.
    if (!connection.inTransaction)
      throw "error" in outcome ? outcome.error : new Error("A work ended its transaction.");
    connection.exec("error" in outcome ? "ROLLBACK TO work; RELEASE work" : "RELEASE work");
    job.outcome = outcome;
  }

  /** Silence is what is limited, not length: a long work that yields between its statements may go on. */
  #limited(job: Job): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const limitMs = this.#options.workLimitMs;
      this.#lastStatementAt = performance.now();
      const look = () => {
        const since = Math.max(this.#lastStatementAt, this.#connection?.answeredAt ?? 0);
        const leftMs = since + limitMs - performance.now();
        if (leftMs > 0) timer = setTimeout(look, leftMs);
        else reject(new Error(`A write was silent for longer than ${limitMs} ms: it may hold SQL and nothing else.`));
      };
      let timer = setTimeout(look, limitMs);
      this.#scope
        .run(job, async () => job.run())
        .then(resolve, reject)
        .finally(() => clearTimeout(timer));
    });
  }

  #giveUp(error: unknown): void {
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
  if (job.outcome === null) throw new Error("A work of a committed group has no outcome.");
  if ("error" in job.outcome) job.reject(job.outcome.error);
  else job.resolve(job.outcome.value);
}
