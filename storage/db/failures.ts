import { StorageFull } from "../objects/store.ts";

/** The error and everything that caused it: drizzle wraps what the driver threw. */
function* chain(error: unknown): Generator<Record<string, unknown>> {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    yield at as unknown as Record<string, unknown>;
  }
}

/** SQLite's result codes, basic and extended, of `error` or of what caused it: `["SQLITE_BUSY_SNAPSHOT", …]`. */
function codes(error: unknown): string[] {
  return [...chain(error)]
    .flatMap((one) => [one.code, one.extendedCode])
    .filter((code): code is string => typeof code === "string");
}

const has = (error: unknown, prefix: string) => codes(error).some((code) => code.startsWith(prefix));

/** Somebody else holds the lock; the same statement may succeed later, on another connection. */
export const isBusy = (error: unknown) =>
  ["SQLITE_BUSY", "SQLITE_LOCKED", "TRANSACTION_BUSY"].some((code) => has(error, code));

/** A remote database cannot be asked now. */
export const isUnreachable = (error: unknown) => [...chain(error)].some((one) => one instanceof DatabaseUnreachable);

/** Whether what was asked for was written is not known. */
export const isInDoubt = (error: unknown) => [...chain(error)].some((one) => one instanceof CommitInDoubt);

/** The disk is full or fails. SQLite reports a full file system as FULL, IOERR or CANTOPEN, by the call that met it. */
export const isStorageFailure = (error: unknown) =>
  ["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "ENOSPC", "EDQUOT"].some((code) => has(error, code));

/** The file is no database, or not whole: trying again is of no use. */
export const isDamaged = (error: unknown) => ["SQLITE_CORRUPT", "SQLITE_NOTADB"].some((code) => has(error, code));

/** What to do with one. */
export const DAMAGED_ADVICE =
  "stop the server and restore a backup, or go back to the copy that was made before a migration (beside the database, *.before-*)";

/** A UNIQUE or PRIMARY KEY constraint refused the row, here or on a remote server (which may name the basic code alone). */
export const isUniqueViolation = (error: unknown) =>
  has(error, "SQLITE_CONSTRAINT_UNIQUE") ||
  has(error, "SQLITE_CONSTRAINT_PRIMARYKEY") ||
  [...chain(error)].some((one) => String(one.message).includes("UNIQUE constraint failed"));

/** `error` as the type that callers answer 507 to. */
export function asStorageFull(error: unknown): StorageFull {
  return error instanceof StorageFull ? error : new StorageFull({ cause: error });
}

/** No lock was to be had within the time that a write may wait. */
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

/** The database server does not answer, or refuses to: the same may work later. Nothing was written, but see CommitInDoubt. */
export class DatabaseUnreachable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "DatabaseAway";
  }
}

/** The server went away over a COMMIT and did not come back: nobody knows whether it was done, so it must not be done again. */
export class CommitInDoubt extends DatabaseUnreachable {
  constructor(options?: ErrorOptions) {
    super("The database server went away while it committed; what was written may be there or not.", options);
    this.name = "CommitInDoubt";
  }
}
