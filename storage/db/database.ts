import type { ResultSet } from "@libsql/client";
import type { BaseSQLiteDatabase } from "drizzle-orm/sqlite-core";
import type { Commits } from "./commit-cache.ts";

export type Schema = Record<string, unknown>;

/** What queries are written against: the reader and a transaction alike. */
export type Db<S extends Schema = Schema> = BaseSQLiteDatabase<"async", ResultSet, S>;

/** `commits` and `commitSeconds` count since the start. */
export type Writes = { waiting: number; commits: number; commitSeconds: number };

export type Database<S extends Schema = Schema> = {
  /** Reads, each on the newest committed state. Writing through it is refused. */
  readonly db: Db<S>;
  /**
   * Runs `work` in a transaction of its own and resolves when it is durable. `work` holds SQL on `tx` and nothing
   * else: it may run twice, and all other writes wait for it. Throws StorageFull, DatabaseBusy, or what `work` threw.
   */
  write<T>(work: (tx: Db<S>) => Promise<T>): Promise<T>;
  readonly commits: Commits;
  /** How this process's one writer does. */
  writes(): Writes;
  /**
   * Finishes the writes that wait, then lets go of the file. The only owner of a local file leaves an empty write-ahead log
   * behind; where several processes share it (`turn`), the one that started them calls `emptyLog` after the last has ended.
   */
  close(): Promise<void>;
  /** The database file, or null for a remote server. */
  readonly file: string | null;
};

export type DatabaseAddress = { url: string; authToken?: string | undefined };

/** The subset of pino's logger that storage speaks to. */
export type DatabaseLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
};

export type OpenOptions<S extends Schema> = DatabaseAddress & {
  schema: S;
  log?: DatabaseLog;
  /** How long a write may wait for a lock that another process holds; 30 s. */
  lockWaitMs?: number;
  /** Other processes write to the file, too; none may begin a transaction but in its turn. */
  turn?: (() => Promise<{ end(): void }>) | undefined;
  /** A work that runs no statement for longer is rolled back and rejected; 10 s. */
  workLimitMs?: number;
};
