import type { InArgs, InStatement, ResultSet, Row, Value } from "@libsql/client";
// From the core alone: the client brings network stacks that only a remote database needs.
import { LibsqlError } from "@libsql/core/api";
import Database from "libsql";
import AsyncDatabase from "libsql/promise";
import { isBusy, isStorageFailure } from "./failures.ts";
import { boundArgs, type Columns, columnsOf, resultRow } from "./values.ts";

type Statement = { native: Database.Statement; columns: Columns | null; arity: number; changes: boolean };

/** Statements kept prepared: preparing costs five times what a point select does. */
const STATEMENTS_KEPT = 400;

/**
 * One synchronous connection to a database file, with its prepared statements.
 *
 * It never waits for a lock (libSQL would wait on the main thread). After one SQLITE_BUSY from a prepared statement,
 * later writes on a libsql connection report success and are never committed, so a connection that met BUSY or a
 * failing disk has a `fault` and refuses all further use.
 */
export class Connection {
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Statement>();
  fault: Error | null = null;

  constructor(path: string, access: "write" | "read") {
    this.#db = this.#guard(() => new Database(path, { timeout: 0 }));
    try {
      // NORMAL would lose the last commits with the power: a 201 means stored.
      this.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
      // A burst leaves a long log behind; cut it back when it has been checkpointed.
      this.exec("PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -16000;");
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

  /** Runs one statement to its end. Throws LibsqlError with SQLite's code, as @libsql/client does. */
  run(statement: InStatement): ResultSet {
    const { sql, args } = typeof statement === "string" ? { sql: statement, args: undefined } : statement;
    const values = boundArgs(args);
    return this.#guard(() => {
      const prepared = this.#prepare(sql, args);
      // Never `get()`: it leaves the statement open at its row, and this connection stuck at an old snapshot.
      if (prepared.columns !== null) return toRows(prepared, prepared.native.all(values) as Value[][]);
      const done = prepared.native.run(values);
      return resultSet([], [], done.changes, BigInt(done.lastInsertRowid));
    });
  }

  /**
   * COMMIT on another thread: the sync of the disk, and the checkpoint that comes with every thousandth page, would
   * stop the event loop for as long as the disk takes. Nothing else may use the connection until it has returned.
   */
  async commit(): Promise<void> {
    // libsql's two faces hold the same native handle, in `db`; only this one runs it on a thread of its pool.
    const { exec } = AsyncDatabase.prototype as unknown as { exec(this: unknown, sql: string): Promise<void> };
    try {
      await exec.call(this.#db, "COMMIT");
    } catch (error) {
      throw this.#failed(error);
    }
  }

  close(): void {
    if (!this.#db?.open) return;
    // Closing leaves a transaction open, with its lock, until the last statement object is garbage: end it first.
    try {
      if (this.#db.inTransaction) this.#db.exec("ROLLBACK");
    } catch {
      // SQLite has rolled back already, or cannot; either way nothing more is to be done on this connection.
    }
    this.#statements.clear();
    this.#db.close();
  }

  #prepare(sql: string, args: InArgs | undefined): Statement {
    const arity = args === undefined ? 0 : Array.isArray(args) ? args.length : -1;
    const kept = this.#statements.get(sql);
    // Bindings outlive a run: with fewer arguments than last time, the old ones would be used again.
    if (kept && kept.arity === arity && arity >= 0) {
      this.#statements.delete(sql);
      this.#statements.set(sql, kept);
      return kept;
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
