import { StorageFull } from "../objects/store.ts";

/** The error and all its causes: drizzle wraps errors of the driver. */
function* chain(error: unknown): Generator<Record<string, unknown>> {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    yield at as unknown as Record<string, unknown>;
  }
}

/** SQLite's result codes, basic and extended, of `error` or its causes: `["SQLITE_BUSY_SNAPSHOT", …]`. */
function codes(error: unknown): string[] {
  return [...chain(error)]
    .flatMap((one) => [one.code, one.extendedCode])
    .filter((code): code is string => typeof code === "string");
}

const has = (error: unknown, start: string) => codes(error).some((code) => code.startsWith(start));

/** Another process holds the lock; the same statement may succeed later, on another connection. */
export const isBusy = (error: unknown) =>
  ["SQLITE_BUSY", "SQLITE_LOCKED", "TRANSACTION_BUSY"].some((code) => has(error, code));

/** A remote database is unreachable. */
export const isUnreachable = (error: unknown) => [...chain(error)].some((one) => one instanceof DatabaseUnreachable);

/** It is unknown whether the write was committed. */
export const isInDoubt = (error: unknown) => [...chain(error)].some((one) => one instanceof CommitInDoubt);

/** The disk is full or fails. SQLite reports a full file system as FULL, IOERR or CANTOPEN, depending on the call. */
export const isStorageFailure = (error: unknown) =>
  ["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "ENOSPC", "EDQUOT"].some((code) => has(error, code));

/** The file is not a database, or is damaged: a retry does not help. */
export const isDamaged = (error: unknown) => ["SQLITE_CORRUPT", "SQLITE_NOTADB"].some((code) => has(error, code));

/** What to do about it. */
export const DAMAGED_ADVICE =
  "stop the server and restore a backup, or the copy written before a migration (next to the database, *.before-*)";

/**
 * A UNIQUE or PRIMARY KEY constraint refused the row, here or on a remote server (which may report only the basic
 * code).
 */
export const isUniqueViolation = (error: unknown) =>
  has(error, "SQLITE_CONSTRAINT_UNIQUE") ||
  has(error, "SQLITE_CONSTRAINT_PRIMARYKEY") ||
  [...chain(error)].some((one) => String(one.message).includes("UNIQUE constraint failed"));

/** Converts `error` to the type that is answered with 507. */
export function asStorageFull(error: unknown): StorageFull {
  return error instanceof StorageFull ? error : new StorageFull({ cause: error });
}

/** The lock was not available within the time that a write may wait. */
export class DatabaseBusy extends Error {
  constructor(waitedMs: number, cause: unknown) {
    super(
      `Another process has held the database's write lock for ${Math.round(waitedMs / 1000)} s; nothing was written.`,
      {
        cause,
      },
    );
    this.name = "DatabaseBusy";
  }
}

/**
 * The database server does not respond, or refuses requests: a later attempt may succeed. Nothing was written, except
 * with CommitInDoubt.
 */
export class DatabaseUnreachable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "DatabaseAway";
  }
}

/**
 * The server disconnected during a COMMIT and did not return: it is unknown whether it was applied, so it must not be
 * repeated.
 */
export class CommitInDoubt extends DatabaseUnreachable {
  constructor(options?: ErrorOptions) {
    super("The connection to the database server was lost during a commit; the outcome is unknown.", options);
    this.name = "CommitInDoubt";
  }
}
