import type { InStatement, ResultSet, Value } from "@libsql/client";
import { randomName } from "#lib/base";
import { CommitInDoubt, isBusy, isStorageFailure, isUnreachable } from "./failures.ts";
import type { HranaServer } from "./hrana-server.ts";
import type { HranaStream } from "./hrana-stream.ts";
import {
  type BatchResult,
  type Step,
  toError,
  toResult,
  toValues,
  toWire,
  type WireResult,
  type WireStatement,
} from "./hrana-wire.ts";
import { backoff } from "./wait.ts";

/** The last commit of each writer, by which it finds out whether a COMMIT without a response was applied. */
const COMMITS = `CREATE TABLE IF NOT EXISTS _commits
  (writer TEXT PRIMARY KEY, number INTEGER NOT NULL, at INTEGER NOT NULL) STRICT`;
const MARK = `INSERT INTO _commits (writer, number, at) VALUES (?, ?, unixepoch())
  ON CONFLICT (writer) DO UPDATE SET number = excluded.number, at = excluded.at`;
/** A writer resolves a doubtful commit within seconds. */
const FORGET = "DELETE FROM _commits WHERE at < unixepoch() - 86400";

const CHANGES_NOTHING = /^\s*select\b/i;
const COUNTS_CHANGES = /^\s*(insert|update|delete|replace)\b/i;
const NOT_ENDED: Step["condition"] = { type: "not", cond: { type: "is_autocommit" } };

export type RemoteConnectionOptions = { server: HranaServer; settleMs: number };

/**
 * The write queue's connection to a remote server. Statements given to `exec` are sent with the next one, so BEGIN,
 * SAVEPOINT and RELEASE cost no round trip; each other statement costs one. After a `fault` the transaction is lost and
 * the connection must not be used again.
 */
export class RemoteConnection {
  readonly #server: HranaServer;
  readonly #settleMs: number;
  readonly #writer = randomName(16);
  #stream: HranaStream;
  #before: string[] = [];
  #commits = 0;
  #isBegun = false;
  #hasChanged = false;
  #refused: Error | null = null;
  #asked = 0;
  #answeredAt = 0;
  fault: Error | null = null;

  constructor({ server, settleMs }: RemoteConnectionOptions) {
    this.#server = server;
    this.#settleMs = settleMs;
    this.#stream = server.stream();
  }

  /** As far as it is known: a server that has ended it reports so with the next statement. */
  get inTransaction(): boolean {
    return this.fault === null;
  }

  get answeredAt(): number {
    return this.#asked > 0 ? performance.now() : this.#answeredAt;
  }

  /** Takes statements without arguments or results, such as SAVEPOINT; none may contain a semicolon. */
  exec(sql: string): void {
    if (this.fault) throw this.fault;
    if (sql === "BEGIN IMMEDIATE") this.#begin();
    else this.#before.push(...sql.split(/;\s*/).filter(Boolean));
  }

  #begin(): void {
    if (this.#stream.isStale) {
      this.#stream.close();
      this.#stream = this.#server.stream();
    }
    const first = this.#commits === 0 ? [COMMITS, FORGET] : [];
    this.#before = ["BEGIN IMMEDIATE", ...first];
    this.#isBegun = false;
    this.#hasChanged = false;
  }

  /** Runs one statement to its end. Throws LibsqlError with SQLite's basic code, or DatabaseAway. */
  async run(statement: InStatement): Promise<ResultSet> {
    return toResult(await this.#execute(statement));
  }

  async values(statement: InStatement): Promise<Value[][]> {
    return toValues(await this.#execute(statement));
  }

  async #execute(statement: InStatement): Promise<WireResult> {
    const stmt = toWire(statement);
    const result = await this.#send([stmt]);
    if (!CHANGES_NOTHING.test(stmt.sql) && (result.affected_row_count > 0 || !COUNTS_CHANGES.test(stmt.sql)))
      this.#hasChanged = true;
    return result;
  }

  /**
   * COMMIT. When its response is lost, queries whether it was applied: throws when not, and CommitInDoubt when that
   * cannot be determined.
   */
  async commit(): Promise<void> {
    if (!this.#isBegun) return;
    const mark = ++this.#commits;
    try {
      const recordCommit = toWire({ sql: MARK, args: [this.#writer, mark] });
      await this.#send([...(this.#hasChanged ? [recordCommit] : []), { sql: "COMMIT" }]);
    } catch (error) {
      if (!isUnreachable(error) || !this.#hasChanged || !(await this.#isCommitted(mark))) throw error;
      this.fault = null;
    }
  }

  close(): void {
    this.fault ??= new Error("The connection is closed.");
    this.#stream.close();
  }

  /** Sends queued statements, then `statements`, each only if the previous one succeeded; returns the last result. */
  async #send(statements: WireStatement[]): Promise<WireResult> {
    if (this.fault) throw this.fault;
    const all = [...this.#before.map((sql) => ({ sql })), ...statements];
    this.#before = [];
    // SQLite ends the whole transaction on some errors; later statements would be committed on their own.
    const first = this.#isBegun ? NOT_ENDED : undefined;
    this.#isBegun = true;
    const steps = all.map((stmt, i): Step => {
      const condition = i === 0 ? first : ({ type: "ok", step: i - 1 } as const);
      return condition ? { stmt, condition } : { stmt };
    });
    const { step_results, step_errors } = await this.#ask(steps);
    const last = step_results[steps.length - 1];
    if (last) return last;
    const at = step_errors.findIndex((one) => one !== null);
    const error = at < 0 ? null : toError(step_errors[at] as NonNullable<(typeof step_errors)[number]>);
    if (error === null) throw this.#lost(this.#refused ?? new Error("The database server ended the transaction."));
    if (at < steps.length - 1 || isBusy(error) || isStorageFailure(error)) throw this.#lost(error);
    this.#refused = error;
    throw error;
  }

  async #ask(steps: Step[]): Promise<BatchResult> {
    this.#asked++;
    try {
      return await this.#stream.batch(steps);
    } catch (error) {
      throw this.#lost(error as Error);
    } finally {
      this.#asked--;
      this.#answeredAt = performance.now();
    }
  }

  #lost(error: Error): Error {
    this.fault ??= error;
    return error;
  }

  /**
   * Whether the commit `mark` was applied. Holding the write lock proves that no other transaction is open: a commit
   * that is not visible now never will be.
   */
  async #isCommitted(mark: number): Promise<boolean> {
    const since = performance.now();
    for (let attempt = 0; ; await backoff(attempt++)) {
      const stream = this.#server.stream();
      try {
        const selectNumber = toWire({ sql: "SELECT number FROM _commits WHERE writer = ?", args: [this.#writer] });
        const { step_results, step_errors } = await stream.batch([
          { stmt: { sql: "BEGIN IMMEDIATE" } },
          // When the very first commit failed there is none.
          { stmt: { sql: COMMITS }, condition: { type: "ok", step: 0 } },
          { stmt: selectNumber, condition: { type: "ok", step: 1 } },
          { stmt: { sql: "ROLLBACK" }, condition: { type: "ok", step: 0 } },
        ]);
        if (step_results[2]) return toResult(step_results[2]).rows[0]?.number === mark;
        const refused = step_errors.find((one) => one !== null);
        const error = refused ? toError(refused) : new Error("The database server did not answer a request.");
        if (!isBusy(error) || performance.now() - since > this.#settleMs) throw error;
      } catch (error) {
        if (isUnreachable(error) && performance.now() - since < this.#settleMs) continue;
        this.fault = new CommitInDoubt({ cause: error });
        throw this.fault;
      } finally {
        stream.close();
      }
    }
  }
}
