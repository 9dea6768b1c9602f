import type { ResultSet } from "@libsql/client";
import type { BaseSQLiteDatabase } from "drizzle-orm/sqlite-core";
import type { Commits } from "./commit-cache.ts";

/** The type that queries accept: the reader or a transaction. */
export type Db = BaseSQLiteDatabase<"async", ResultSet, Record<string, unknown>>;

/** `commits` and `commitSeconds` count since the start. */
export type Writes = { waiting: number; commits: number; commitSeconds: number };

export type Database = {
  /** Reads the newest committed state. Writing through it is refused. */
  readonly db: Db;
  /**
   * Runs `work` in a transaction and resolves when it is durable. `work` contains only SQL on `tx`: it may run twice,
   * and all other writes wait for it. Throws StorageFull, DatabaseBusy, or errors of `work`.
   */
  write<T>(work: (tx: Db) => Promise<T>): Promise<T>;
  /** Runs `work` while no process writes to the database. Works with a closed database too. */
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  readonly commits: Commits;
  /** Statistics of this process's writer. */
  writes(): Writes;
  /**
   * Completes queued writes, then closes the file. The only owner of a local file leaves an empty write-ahead log;
   * where several processes share it (`writeLock`), the supervisor calls `emptyLog` after the last one has exited.
   */
  close(): Promise<void>;
  /** The database file, or null for a remote server. */
  readonly file: string | null;
};

export type DatabaseAddress = { url: string; authToken?: string | undefined };

/** The subset of pino's logger that storage uses. */
export type DatabaseLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
};

export type OpenOptions = DatabaseAddress & {
  log?: DatabaseLog;
  /** How long a write may wait for a lock that another process holds; the default is 30 s. */
  lockWaitMs?: number;
  /** Other processes write to the file too; transactions are serialized by this lock. */
  writeLock?: (() => Promise<{ end(): void }>) | undefined;
  /** False when a replicator copies the write-ahead log to the database instead of SQLite. */
  checkpoints?: boolean;
  /** A work that runs no statement for this long is rolled back and rejected; the default is 10 s. */
  workLimitMs?: number;
};
