import { fileURLToPath } from "node:url";
import type { ResultSet } from "@libsql/client";
import { construct } from "drizzle-orm/libsql/driver-core";
import type { BaseSQLiteDatabase } from "drizzle-orm/sqlite-core";
import { localClient } from "./client.ts";
import { Connection } from "./connection.ts";
import { Reader } from "./reader.ts";
import { WriteQueue } from "./write-queue.ts";
import { Writer } from "./writer.ts";

export type Schema = Record<string, unknown>;

/** What queries are written against: the reader and a transaction alike. */
export type Db<S extends Schema = Schema> = BaseSQLiteDatabase<"async", ResultSet, S>;

export type Database<S extends Schema = Schema> = {
  /** Reads, each on the newest committed state. Writing through it is refused. */
  readonly db: Db<S>;
  /**
   * Runs `work` in a transaction of its own and resolves when it is durable. `work` holds SQL on `tx` and nothing
   * else: it may run twice, and all other writes wait for it. Throws StorageFull, DatabaseBusy, or what `work` threw.
   */
  write<T>(work: (tx: Db<S>) => Promise<T>): Promise<T>;
  /** Finishes the writes that wait, then lets go of the file. */
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
  /** A work that takes longer is rolled back and rejected; 10 s. */
  workLimitMs?: number;
};

/** The path behind a `file:` address (`file:relative.db`, `file:/absolute.db`, `file:///absolute.db`), else null. */
export function databaseFile(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  return url.startsWith("file://") ? fileURLToPath(url) : url.slice("file:".length);
}

/** Opens a local file (made when absent) or a remote libSQL server; both behave alike. Migrate first. */
export async function openDatabase<S extends Schema>(options: OpenOptions<S>): Promise<Database<S>> {
  const file = databaseFile(options.url);
  if (file !== null) return openLocal(file, options);
  const { openRemote } = await import("./remote.ts");
  return openRemote(options);
}

function openLocal<S extends Schema>(file: string, options: OpenOptions<S>): Database<S> {
  const { schema, log, lockWaitMs, workLimitMs } = options;
  const queue = new WriteQueue({
    open: () => new Connection(file, "write"),
    ...(lockWaitMs === undefined ? {} : { lockWaitMs }),
    ...(workLimitMs === undefined ? {} : { workLimitMs }),
    ...(log ? { warn: (fields, message) => log.warn(fields, message) } : {}),
  });
  const reader = new Reader(file);
  const tx = construct(localClient(new Writer(queue)), { schema });
  return {
    file,
    db: construct(localClient(reader), { schema }),
    write: (work) => queue.write(() => work(tx)),
    async close() {
      await queue.close();
      reader.close();
    },
  };
}
