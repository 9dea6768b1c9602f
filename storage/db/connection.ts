import type { InArgs, InStatement, ResultSet, Row, Value } from "@libsql/client";
// From the core: the main module imports network code that only a remote database needs.
import { LibsqlError } from "@libsql/core/api";
import Database from "libsql";
import AsyncDatabase from "libsql/promise";
import { isBusy, isStorageFailure } from "./failures.ts";
import { boundArgs, type Columns, columnsOf, resultRow } from "./values.ts";

type Statement = { native: Database.Statement; columns: Columns | null; arity: number; changes: boolean };

/** Prepared statements that are cached: preparing costs five times a point select. */
const STATEMENTS_KEPT = 400;

/**
 * A synchronous connection to a database file, with its prepared statements. It never waits for a lock, because libSQL
 * would wait on the main thread. After one SQLITE_BUSY from a prepared statement, later writes on a libsql connection
 * report success and are never committed, so a connection that received BUSY or a disk error has a `fault` and refuses
 * all further use.
 */
export class Connection {
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Statement>();
  fault: Error | null = null;

  /** Without `checkpoints`, commits never empty the log: the replica does. */
  constructor(path: string, access: "write" | "read", { checkpoints = true } = {}) {
    this.#db = this.#guard(() => new Database(path, { timeout: 0 }));
    try {
      // NORMAL would lose the last commits in a power failure: a 201 means stored.
      this.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
      // A burst leaves a long log; it is truncated after its checkpoint.
      this.exec("PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16000;");
      if (!checkpoints) this.exec("PRAGMA wal_autocheckpoint = 0;");
      if (access === "read") this.exec("PRAGMA query_only = ON;");
    } catch (error) {
      this.close();
      throw error;
    }
  }

  get inTransaction(): boolean {
    return this.#db.open && this.#db.inTransaction;
  }

  /** Runs statements without arguments or results, such as BEGIN. */
  exec(sql: string): void {
    this.#guard(() => this.#db.exec(sql));
  }

  /** Runs one statement to its end. Throws LibsqlError with SQLite's code, like @libsql/client. */
  run(statement: InStatement): ResultSet {
    const { sql, args } = typeof statement === "string" ? { sql: statement, args: undefined } : statement;
    const values = boundArgs(args);
    return this.#guard(() => {
      const prepared = this.#prepare(sql, args);
      // Never `get()`: it leaves the statement open at its row, and this connection at an old snapshot.
      if (prepared.columns !== null) return toRows(prepared, prepared.native.all(values) as Value[][]);
      const done = prepared.native.run(values);
      return resultSet([], [], done.changes, BigInt(done.lastInsertRowid));
    });
  }

  /** The rows of one statement, without names. */
  values(statement: InStatement): Value[][] {
    const { sql, args } = typeof statement === "string" ? { sql: statement, args: undefined } : statement;
    const values = boundArgs(args);
    return this.#guard(() => {
      const { native, columns } = this.#prepare(sql, args);
      if (columns !== null) return native.all(values) as Value[][];
      native.run(values);
      return [];
    });
  }

  /** COMMIT, which syncs the disk, and every thousandth page a checkpoint. */
  commit(): Promise<void> {
    return this.execOnThread("COMMIT");
  }

  /** Like `exec`, on another thread: syncing the disk would block the event loop. The connection is unusable meanwhile. */
  async execOnThread(sql: string): Promise<void> {
    // libsql's two APIs share the native handle, in `db`; only this one runs it on a thread of its pool.
    const { exec } = AsyncDatabase.prototype as unknown as { exec(this: unknown, sql: string): Promise<void> };
    try {
      await exec.call(this.#db, sql);
    } catch (error) {
      throw this.#failed(error);
    }
  }

  close(): void {
    if (!this.#db?.open) return;
    // Closing leaves a transaction open, with its lock, until the last statement object is collected: it must be ended
    // first.
    try {
      if (this.#db.inTransaction) this.#db.exec("ROLLBACK");
    } catch {
      // SQLite has rolled back already, or cannot; in both cases the connection is no longer used.
    }
    this.#statements.clear();
    this.#db.close();
  }

  #prepare(sql: string, args: InArgs | undefined): Statement {
    const arity = args === undefined ? 0 : Array.isArray(args) ? args.length : -1;
    const cached = this.#statements.get(sql);
    // Bindings persist between runs: with fewer arguments than before, old ones would be used again.
    if (cached && cached.arity === arity && arity >= 0) {
      this.#statements.delete(sql);
      this.#statements.set(sql, cached);
      return cached;
    }
    const native = this.#db.prepare(sql);
    const columns = native.reader ? columnsOf(native.columns().map((column) => column.name)) : null;
    if (columns !== null) native.raw(true);
    const prepared = { native, columns, arity, changes: /^\s*(insert|update|delete|replace)\b/i.test(sql) };
    this.#statements.set(sql, prepared);
    if (this.#statements.size > STATEMENTS_KEPT)
      this.#statements.delete(this.#statements.keys().next().value as string);
    return prepared;
  }

  #guard<T>(call: () => T): T {
    if (this.fault) throw this.fault;
    try {
      return call();
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #failed(thrown: unknown): Error {
    const error = toLibsqlError(thrown);
    if (isBusy(error) || isStorageFailure(error)) this.fault = error;
    return error;
  }
}

function toLibsqlError(thrown: unknown): Error {
  if (!(thrown instanceof Database.SqliteError)) return thrown as Error;
  const basic = thrown.code.split("_").slice(0, 2).join("_");
  return new LibsqlError(thrown.message, basic, thrown.code, thrown.rawCode, thrown);
}

function toRows({ columns, changes }: Statement, values: Value[][]): ResultSet {
  const rows = values.map((one) => resultRow(one, columns as Columns));
  return resultSet(columns?.all ?? [], rows, changes ? rows.length : 0, undefined);
}

function resultSet(columns: string[], rows: Row[], rowsAffected: number, lastInsertRowid: bigint | undefined) {
  const result = { columns, columnTypes: [], rows, rowsAffected, lastInsertRowid };
  return { ...result, toJSON: () => ({ ...result, lastInsertRowid: lastInsertRowid?.toString() ?? null }) };
}
