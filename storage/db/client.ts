import type { Client, InArgs, InStatement, ResultSet, Transaction, TransactionMode } from "@libsql/client";
import { LibsqlError } from "@libsql/core/api";

/** What runs statements: the reader, or the write queue's connection while one of its works is running. */
export type Executor = {
  run(statement: InStatement): Promise<ResultSet>;
  /** Runs `statements` as one, all or nothing. */
  batch(statements: InStatement[]): Promise<ResultSet[]>;
  /** A nested transaction, where the executor can give one. */
  begin(): Promise<Transaction>;
};

/**
 * @libsql/client's interface over an executor, so that `drizzle({ client })` takes a local file and a remote server
 * alike. Its own client for files is a pool that runs 18–30k point selects a second where one connection runs 170k,
 * and that waits for locks with the event loop stopped.
 */
export function localClient(executor: Executor): Client {
  const unsupported = (what: string) => () => {
    throw new LibsqlError(`${what} is not available on this client.`, "UNSUPPORTED");
  };
  return {
    protocol: "file",
    closed: false,
    execute: (statement: InStatement, args?: InArgs) => executor.run(withArgs(statement, args)),
    batch: (statements, _mode?: TransactionMode) =>
      executor.batch(statements.map((one) => (Array.isArray(one) ? withArgs(one[0], one[1]) : one))),
    transaction: () => executor.begin(),
    // The migrator and the write queue own these; a stray call would act outside their order.
    migrate: unsupported("migrate"),
    executeMultiple: unsupported("executeMultiple"),
    sync: unsupported("sync"),
    reconnect: unsupported("reconnect"),
    close: unsupported("close"),
  };
}

function withArgs(statement: InStatement, args: InArgs | undefined): InStatement {
  return typeof statement === "string" && args !== undefined ? { sql: statement, args } : statement;
}
