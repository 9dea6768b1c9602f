import type { InStatement, ResultSet, Transaction, Value } from "@libsql/client";
import type { Executor } from "./client.ts";
import type { WriteConnection, WriteQueue } from "./write-queue.ts";

/** The queue begins and ends transactions; a work that did would affect other works' writes. */
const TRANSACTION_CONTROL = /^\s*(begin|commit|end|rollback(?!\s+to\b)|attach|detach|vacuum)\b/i;

/** Runs the statements of the current work in `queue`. */
export class Writer implements Executor {
  readonly #queue: WriteQueue;
  #nested = 0;

  constructor(queue: WriteQueue) {
    this.#queue = queue;
  }

  async run(statement: InStatement): Promise<ResultSet> {
    return this.#connectionFor(statement).run(statement);
  }

  async values(statement: InStatement): Promise<Value[][]> {
    return this.#connectionFor(statement).values(statement);
  }

  #connectionFor(statement: InStatement): WriteConnection {
    const connection = this.#queue.connectionOfWork();
    const sql = typeof statement === "string" ? statement : statement.sql;
    if (TRANSACTION_CONTROL.test(sql)) throw new Error(`A write must not run ${sql.trim().split(/\s/)[0]}.`);
    return connection;
  }

  /** Atomic within the work, which may catch an error and write something else. */
  async batch(statements: InStatement[]): Promise<ResultSet[]> {
    const nested = await this.begin();
    try {
      const results = [];
      for (const one of statements) results.push(await nested.execute(one));
      await nested.commit();
      return results;
    } finally {
      nested.close();
    }
  }

  /** A savepoint, for drizzle's `tx.transaction(…)`; those of one work must be nested, not concurrent. */
  async begin(): Promise<Transaction> {
    const name = `nested${++this.#nested}`;
    const exec = (sql: string) => this.#queue.connectionOfWork().exec(sql);
    exec(`SAVEPOINT ${name}`);
    let open = true;
    const end = (sql: string) => {
      if (!open) return;
      open = false;
      exec(sql);
    };
    const rollback = () => end(`ROLLBACK TO ${name}; RELEASE ${name}`);
    return {
      execute: (statement) => this.run(statement),
      batch: (statements) => this.batch(statements),
      executeMultiple: async (sql) => exec(sql),
      commit: async () => end(`RELEASE ${name}`),
      rollback: async () => rollback(),
      close: rollback,
      get closed() {
        return !open;
      },
    };
  }
}
