import { setTimeout, sleep } from "#lib/base";
import { Connection } from "../db/connection.ts";
import type { DatabaseLog } from "../db/database.ts";
import { isBusy } from "../db/failures.ts";
import type { ObjectStore } from "../objects/store.ts";
import { type Generation, noteWhole, openGeneration } from "./generation.ts";
import { pruneReplica } from "./retention.ts";
import { identityOf, removePending, writePending, writeSaved } from "./saved-state.ts";
import { type ReadSecrets, SecretsCopy } from "./secrets-copy.ts";
import type { Encoded } from "./segment.ts";
import { isSnapshotDue, takeSnapshot } from "./take-snapshot.ts";
import { WalChanged, WalReader } from "./wal.ts";
import { WalStream } from "./wal-stream.ts";

/** How often the log is observed: the resolution of the times that can be restored. */
const OBSERVE_MS = 50;
/** Between the starts of two segments. Each is a request, and everything arrives within a second. */
const SEND_MS = 500;
/** A checkpoint when the log has this many new frames: 16 MiB, four times SQLite's default. */
const CHECKPOINT_FRAMES = 4000;
/** Writers wait for a checkpoint, so it must not have to read more than this. */
const CHECKPOINT_TAIL_FRAMES = 8000;
const CHECKPOINT_RETRY_MS = 1000;
/** Size of the log at which the generation is given up, because the replica has been unavailable for too long. */
const MAX_LOG_BYTES = 512 * 2 ** 20;
const PRUNE_MS = 3_600_000;
const MAINTENANCE_RETRY_MS = 30_000;
const BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 15_000;
/** Part of the 15 s that a stop may take. */
const FINISH_MS = 3000;
const WARN_MS = 60_000;

export type ReplicaStatus = {
  /** Age of the oldest change that cannot be restored from the replica. */
  lag_seconds: number;
  error: string | null;
};

export type ReplicatorOptions = {
  file: string;
  /** A connection to the file: while it is open, SQLite does not empty the log by itself. `finish` closes it. */
  connection: Connection;
  /** The directory of the state that is kept between starts. */
  folder: string;
  openStore: () => Promise<ObjectStore>;
  /** Runs work while nothing is written to the database, by any process. */
  exclusively: <T>(work: () => Promise<T>) => Promise<T>;
  secrets: ReadSecrets;
  now: () => number;
  log: DatabaseLog;
  retentionMs: number;
  vodbox: string;
  maxLogBytes?: number;
};

/**
 * Copies every committed transaction of a database to a replica. It alone runs checkpoints, so that no part of the
 * write-ahead log is overwritten before it was read. A generation is a snapshot of the database and the segments since;
 * another one begins whenever continuity cannot be shown.
 */
export class Replicator {
  readonly #options: ReplicatorOptions;
  readonly #stopping = new AbortController();
  readonly #secrets: SecretsCopy;
  readonly #finishing = new AbortController();
  #connection: Connection;
  #wal: WalReader | null = null;
  #stream: WalStream | null = null;
  #store: ObjectStore | null = null;
  #current: Generation | null = null;
  /** While there is no generation with a snapshot: since when. */
  #uncoveredSince: number;
  /** Null until an attempt has failed: the lag shows that nothing is copied yet. */
  #error: string | null = null;
  #warnedAt = Number.NEGATIVE_INFINITY;
  /** The log when a generation was last given up. */
  #gaveUp = { salts: "", frames: 0 };
  #sentAt = Number.NEGATIVE_INFINITY;
  #triedCheckpointAt = Number.NEGATIVE_INFINITY;
  #maintainAt = Number.NEGATIVE_INFINITY;
  #prunedAt = Number.NEGATIVE_INFINITY;
  #maintenance: Promise<void> | null = null;
  #loops: Promise<unknown> | null = null;

  constructor(options: ReplicatorOptions) {
    this.#options = options;
    this.#connection = options.connection;
    this.#uncoveredSince = options.now();
    this.#secrets = new SecretsCopy(options.secrets);
  }

  /** Resolves once the log is observed; the replica need not respond. */
  async start(): Promise<void> {
    const { file, now } = this.#options;
    // Creates the index of the log.
    this.#connection.run("SELECT count(*) FROM sqlite_schema");
    this.#wal = await WalReader.open(file);
    this.#stream = await WalStream.open(this.#wal, { now, lineOf: () => this.#current });
    this.#loops = Promise.all([this.#observing(), this.#sending()]);
  }

  status(): ReplicaStatus {
    const { now } = this.#options;
    const since = this.#oldest();
    const lagMs = since === null ? 0 : Math.max(0, now() - since);
    return { lag_seconds: Math.round(lagMs) / 1000, error: this.#error };
  }

  /**
   * Stores what is left, for at most 3 s, and copies the log to the database. Nothing may be written afterwards. Never
   * throws.
   */
  async finish(): Promise<void> {
    this.#finishing.abort();
    const timer = setTimeout(() => this.#stopping.abort(), FINISH_MS);
    await Promise.race([this.#loops, sleep(FINISH_MS, undefined, { ref: false })]);
    this.#stopping.abort();
    clearTimeout(timer);
    this.#connection.close();
  }

  /** After the database was closed. */
  close(): Promise<void> {
    return this.#wal?.close() ?? Promise.resolve();
  }

  #isFinishing(): boolean {
    return this.#finishing.signal.aborted;
  }

  /** Ends early when the replicator finishes. */
  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#finishing.signal }).catch(() => {});
  }

  /** Time of the oldest change that cannot be restored from the replica; null when there is none. */
  #oldest(): number | null {
    const current = this.#current;
    if (!current?.snapshot) return this.#uncoveredSince;
    if (current.next) return current.next.name.first;
    const oldest = this.#stream?.oldest ?? null;
    return oldest === null ? null : Math.max(oldest, current.lastAt);
  }

  async #observing(): Promise<void> {
    while (!this.#isFinishing()) {
      await this.#guarded(async () => {
        await this.#observe();
        await this.#giveUpIfTooLong();
      });
      await this.#pause(OBSERVE_MS);
    }
  }

  #log() {
    return (this.#stream as WalStream).state;
  }

  async #observe(): Promise<void> {
    await this.#noticing(this.#stream?.observe());
  }

  /** The result of an observation, after which the generation is given up when the log has changed. */
  async #noticing<T>(observation: Promise<T> | undefined): Promise<T | undefined> {
    try {
      return await observation;
    } catch (error) {
      if (error instanceof WalChanged) this.#lose(error.message);
      throw error;
    }
  }

  async #sending(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      try {
        const isDone = await this.#step();
        failures = 0;
        this.#recovered();
        if (isDone && this.#isFinishing()) return;
        if (isDone) await this.#pause(OBSERVE_MS);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof WalChanged) this.#lose(error.message);
        this.#failed(error);
        const waitMs = Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** failures++);
        // A stop tries once more.
        if (this.#isFinishing()) return;
        await this.#pause(waitMs);
      }
    }
  }

  /** Does what is due next. Returns true when nothing is. */
  async #step(): Promise<boolean> {
    if (this.#isFinishing()) await this.#observe();
    this.#store ??= await this.#options.openStore();
    const current = this.#current ?? (await this.#connect(this.#store));
    const stream = this.#stream as WalStream;
    await this.#secrets.store(this.#store, this.#options.now());
    if (current.next === null && stream.hasMore && (this.#isFinishing() || performance.now() - this.#sentAt >= SEND_MS))
      await this.#cut(current);
    if (current.next) {
      await this.#send(this.#store, current, current.next);
      if (!this.#isFinishing()) await this.#checkpointIfDue(current);
      return false;
    }
    if (this.#isFinishing()) {
      await this.#checkpoint(current);
      return current.next === null;
    }
    await this.#checkpointIfDue(current);
    await this.#maintain(this.#store, current);
    return true;
  }

  async #cut(current: Generation, options: { all?: boolean } = {}): Promise<Encoded | null> {
    current.next = await (this.#stream as WalStream).cut(current, options);
    noteWhole(current);
    return current.next;
  }

  async #send(store: ObjectStore, current: Generation, { name, bytes }: Encoded): Promise<void> {
    this.#sentAt = performance.now();
    await store.put(name.key, bytes, { signal: this.#stopping.signal });
    current.next = null;
    current.stored = { number: name.number, at: name.last };
    current.bytes += bytes.length;
  }

  #connect(store: ObjectStore): Promise<Generation> {
    const { folder, file, now, vodbox, log } = this.#options;
    const wal = this.#wal as WalReader;
    const stream = this.#stream as WalStream;
    const copyLog = () => this.#copyWhileIdle();
    return openGeneration({ store, folder, file, wal, stream, now, vodbox, log, copyLog }, (generation) => {
      this.#current = generation;
    });
  }

  async #checkpointIfDue(current: Generation): Promise<void> {
    const { frames, backfilled } = this.#log();
    if (frames - backfilled < CHECKPOINT_FRAMES || frames - current.position.frame > CHECKPOINT_TAIL_FRAMES) return;
    if (performance.now() - this.#triedCheckpointAt < CHECKPOINT_RETRY_MS) return;
    this.#triedCheckpointAt = performance.now();
    await this.#checkpoint(current);
  }

  /**
   * Copies the log to the database while nothing is written. What is not in a segment yet becomes the next one, which is
   * also written to disk: its frames may be overwritten before it is stored.
   */
  async #checkpoint(current: Generation): Promise<void> {
    const { exclusively, folder, file } = this.#options;
    const stream = this.#stream as WalStream;
    await exclusively(async () => {
      await this.#observe();
      if (this.#current !== current || current.next !== null) return;
      const next = await this.#cut(current, { all: true });
      if (next) await writePending(folder, next);
      const point = { number: current.number, at: current.lastAt };
      current.reach = point;
      await this.#copyLog();
      // A reader of another process, such as a backup, still needs the log.
      if (!(await stream.seal())) return;
      current.base = { ...point, previous: current.previous };
      const { generation, previous } = current;
      const pending = next?.name.key ?? null;
      const database = await identityOf(file);
      await writeSaved(folder, { generation, base: point.number, at: point.at, previous, database, pending });
      if (pending === null) await removePending(folder);
      if (this.#isFinishing()) this.#truncateLog();
    });
  }

  /** The log must not grow without limit. The next generation begins when the replica responds. */
  async #giveUpIfTooLong(): Promise<void> {
    const { maxLogBytes = MAX_LOG_BYTES } = this.#options;
    const { salts, frames, backfilled, pageSize } = this.#log();
    const { salts: lastSalts, frames: lastFrames } = this.#gaveUp;
    const from = Math.max(this.#current?.position.frame ?? backfilled, lastSalts === salts ? lastFrames : 0);
    if ((frames - from) * pageSize <= maxLogBytes) return;
    this.#lose("The replica did not respond for so long that the write-ahead log became too large.");
    // A reader may prevent the copy; then the log has to grow once more as much.
    this.#gaveUp = { salts, frames };
    await this.#copyWhileIdle();
  }

  #copyWhileIdle(): Promise<{ salts: string; frames: number } | null> {
    const stream = this.#stream as WalStream;
    return this.#options.exclusively(async () => {
      await this.#copyLog();
      return (await this.#noticing(stream.seal())) ? stream.state : null;
    });
  }

  /** SQLite copies as much as readers allow. On another thread, because the disk is synced. */
  async #copyLog(): Promise<void> {
    if (this.#connection.fault) {
      const old = this.#connection;
      this.#connection = new Connection(this.#options.file, "write", { checkpoints: false });
      old.close();
    }
    await this.#connection.execOnThread("PRAGMA wal_checkpoint(PASSIVE)");
  }

  /**
   * A process that opens the database next would copy the log once more, which changes the identity of the file. A reader may
   * prevent it; then the next start begins a new generation.
   */
  #truncateLog(): void {
    try {
      this.#connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (error) {
      if (!isBusy(error)) throw error;
    }
  }

  #lose(reason: string): void {
    if (this.#current?.snapshot) this.#uncoveredSince = this.#oldest() ?? this.#options.now();
    if (this.#current)
      this.#options.log.warn(
        { generation: this.#current.generation, reason },
        "the replica has lost its place in the write-ahead log; a new generation follows",
      );
    this.#current = null;
  }

  /** Starts a snapshot or the deletion of old objects when it is due, next to the segments. */
  async #maintain(store: ObjectStore, current: Generation): Promise<void> {
    const now = this.#options.now();
    if (this.#maintenance || performance.now() < this.#maintainAt) return;
    const isDue = isSnapshotDue(current, now);
    const isPruneDue = current.snapshot !== null && Math.abs(now - this.#prunedAt) >= PRUNE_MS;
    if (!isDue && !isPruneDue) return;
    // A snapshot is of the database file: what is only in the log would not be in it.
    if (isDue && current.snapshot !== null && current.base.number < current.number) {
      this.#maintainAt = performance.now() + CHECKPOINT_RETRY_MS;
      await this.#checkpoint(current);
      if (current.base.number < current.stored.number) return;
    }
    const work = async () => {
      if (isDue) await takeSnapshot(this.#snapshotOf(store, current));
      this.#prunedAt = now;
      const deleted = await pruneReplica(store, {
        before: now - this.#options.retentionMs,
        now,
        signal: this.#stopping.signal,
      });
      if (deleted > 0) this.#options.log.info({ deleted }, "deleted old objects of the replica");
    };
    this.#maintenance = work()
      .catch((error) => {
        this.#maintainAt = performance.now() + MAINTENANCE_RETRY_MS;
        if (!this.#stopping.signal.aborted) this.#failed(error);
      })
      .finally(() => {
        this.#maintenance = null;
      });
  }

  #snapshotOf(store: ObjectStore, generation: Generation): Parameters<typeof takeSnapshot>[0] {
    const { vodbox, log } = this.#options;
    const isCurrent = () => this.#current === generation;
    return { store, generation, wal: this.#wal as WalReader, isCurrent, signal: this.#stopping.signal, vodbox, log };
  }

  /** Reports errors instead of throwing them: the server continues without the replica. */
  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const { message } = error as Error;
    this.#error = message;
    if (performance.now() - this.#warnedAt < WARN_MS) return;
    this.#warnedAt = performance.now();
    const { lag_seconds } = this.status();
    this.#options.log.warn(
      { lag_seconds, reason: message },
      "the replica cannot be written; the server continues without it",
    );
  }

  #recovered(): void {
    if (this.#error === null || this.#maintainAt > performance.now()) return;
    if (Number.isFinite(this.#warnedAt)) this.#options.log.info({}, "the replica is written again");
    this.#error = null;
    this.#warnedAt = Number.NEGATIVE_INFINITY;
  }
}
