import type { Client, InArgs, InStatement, ResultSet, Transaction, TransactionMode, Value } from "@libsql/client";
import { LibsqlError } from "@libsql/core/api";

/** Executes statements: the reader, or the write queue's connection while one of its works is running. */
export type Executor = {
  run(statement: InStatement): Promise<ResultSet>;
  /** The rows of the result, without names. */
  values(statement: InStatement): Promise<Value[][]>;
  /** Runs `statements` atomically. */
  batch(statements: InStatement[]): Promise<ResultSet[]>;
  /** A nested transaction, where the executor supports one. */
  begin(): Promise<Transaction>;
};

export type LocalClient = Client & Pick<Executor, "values">;

/**
 * @libsql/client's methods over an executor, so that `drizzle({ client })` works with a local file and a remote
 * server alike. @libsql/client's own client for files is a pool with 18–30k point selects a second where one connection
 * has 170k, and blocks the event loop while it waits for locks.
 */
export function localClient(executor: Executor): LocalClient {
  const unsupported = (method: string) => () => {
    throw new LibsqlError(`${method} is not available on this client.`, "UNSUPPORTED");
  };
  return {
    protocol: "file",
    closed: false,
    execute: (statement: InStatement, args?: InArgs) => executor.run(withArgs(statement, args)),
    values: (statement) => executor.values(statement),
    batch: (statements, _mode?: TransactionMode) =>
      executor.batch(statements.map((one) => (Array.isArray(one) ? withArgs(one[0], one[1]) : one))),
    transaction: () => executor.begin(),
    // Only the migrator and the write queue may call these; other calls would run out of order.
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
