import type { InStatement, ResultSet, Value } from "@libsql/client";
import { LibsqlError } from "@libsql/core/api";
import type { Executor } from "./client.ts";
import { Connection } from "./connection.ts";
import { DatabaseBusy, isBusy } from "./failures.ts";
import { backoff, LOCK_WAIT_MS } from "./wait.ts";

/**
 * Runs reads on one connection (`query_only`), each on the newest committed state. In WAL mode a reader receives BUSY
 * only while another process recovers or truncates the log; it then waits without blocking the event loop.
 */
export class Reader implements Executor {
  readonly #path: string;
  #connection: Connection | null = null;
  #closed = false;
  #opened = 0;
  #version: string | null = null;

  constructor(path: string) {
    this.#path = path;
    this.#open();
  }

  run(statement: InStatement): Promise<ResultSet> {
    return this.#attempt((connection) => connection.run(statement));
  }

  values(statement: InStatement): Promise<Value[][]> {
    return this.#attempt((connection) => connection.values(statement));
  }

  /** All in one snapshot. */
  batch(statements: InStatement[]): Promise<ResultSet[]> {
    return this.#attempt((connection) => {
      connection.exec("BEGIN");
      try {
        return statements.map((one) => connection.run(one));
      } finally {
        // After a fault the connection refuses this too, and is closed by #attempt, which rolls back.
        if (!connection.fault) connection.exec("COMMIT");
      }
    });
  }

  /** Changes after any commit to the file, by any process; queried once per event loop iteration. */
  version(): string {
    if (this.#version === null) {
      this.#version = this.#queryVersion();
      setImmediate(() => {
        this.#version = null;
      });
    }
    return this.#version;
  }

  begin(): never {
    // All reads share this connection: a transaction would hold them on its snapshot.
    throw new LibsqlError(
      "Readers do not support transactions: use write(), or batch() for one snapshot.",
      "UNSUPPORTED",
    );
  }

  close(): void {
    this.#closed = true;
    this.#drop();
  }

  // Not async on the path that always succeeds: it saves a promise per select.
  #attempt<T>(work: (connection: Connection) => T): Promise<T> {
    try {
      return Promise.resolve(work(this.#open()));
    } catch (error) {
      if (this.#connection?.fault) this.#drop();
      return isBusy(error) && !this.#closed ? this.#retry(work) : Promise.reject(error);
    }
  }

  async #retry<T>(work: (connection: Connection) => T): Promise<T> {
    const since = performance.now();
    for (let attempt = 0; ; attempt++) {
      await backoff(attempt);
      try {
        return work(this.#open());
      } catch (error) {
        if (this.#connection?.fault) this.#drop();
        if (!isBusy(error) || this.#closed) throw error;
        if (performance.now() - since > LOCK_WAIT_MS) throw new DatabaseBusy(performance.now() - since, error);
      }
    }
  }

  #open(): Connection {
    if (this.#closed) throw new LibsqlError("The database is closed.", "CLIENT_CLOSED");
    if (this.#connection === null) {
      this.#connection = new Connection(this.#path, "read");
      this.#opened++;
    }
    return this.#connection;
  }

  /** SQLite's data_version, which is comparable only within one connection. */
  #queryVersion(): string {
    try {
      const [row] = this.#open().run("PRAGMA data_version").rows;
      return `${this.#opened} ${row?.data_version}`;
    } catch (error) {
      if (!isBusy(error) || this.#closed) throw error;
      // Unknown: cached values may be old.
      this.#drop();
      return `${++this.#opened} unknown`;
    }
  }

  #drop(): void {
    this.#connection?.close();
    this.#connection = null;
  }
}
