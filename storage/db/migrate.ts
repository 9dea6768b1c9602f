import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import type { Client, Transaction } from "@libsql/client";
import Sqlite from "libsql";
import { UserError } from "#lib/base";
import { isBusy, isStorageFailure } from "./failures.ts";
import { type DatabaseAddress, type DatabaseLog, databaseFile } from "./open.ts";
import { remoteSql } from "./remote-sql.ts";
import { snapshot } from "./snapshot.ts";
import { backoff } from "./wait.ts";

/** A schema migration; `name` defines the order (`0001_spine.sql`), and neither may change once it is released. */
export type Migration = { name: string; sql: string };

/** More than half a minute. */
const MAX_TRIES = 100;

/** The database has migrations that this binary does not know. */
export class NewerDatabase extends UserError {}

type Applied = { name: string; sha256: string };

export type MigrateOptions = DatabaseAddress & {
  migrations: Migration[];
  log?: DatabaseLog;
  /** Called before the first migration of an empty database. When it throws, the database is unchanged. */
  beforeFirst?: () => void;
};

/**
 * Migrates the database to this binary's schema, each migration in a transaction together with its record, so that a
 * start after a crash resumes. A local database with data is copied first. Throws UserError when the database is newer
 * than the binary, has another history, is in use, or the disk is full.
 */
export async function migrate({ url, authToken, migrations, log, beforeFirst }: MigrateOptions): Promise<void> {
  const file = databaseFile(url);
  if (file !== null && isCurrent(file, migrations)) return;
  const { createClient } = await import("@libsql/client");
  // The pool's only connection: a PRAGMA applies to every later statement. Waiting blocks nothing during start-up.
  const client = createClient({ url, concurrency: 1, timeout: 5000, ...(authToken ? { authToken } : {}) });
  try {
    const applied = await appliedTo(client);
    if (applied.length === 0) beforeFirst?.();
    const pending = pendingOf(sorted(migrations), applied);
    const first = pending[0];
    if (first === undefined) return;
    if (file !== null) {
      await client.execute("PRAGMA journal_mode = WAL");
      if (!(await isEmpty(client))) {
        const copy = await snapshot(client, file, first.name);
        log?.info({ copy }, "copied the database before migrating it");
      }
      // A table is rebuilt by copying and dropping it, which must not cascade. Foreign keys are checked before the
      // commit instead.
      await client.execute("PRAGMA foreign_keys = OFF");
    }
    log?.info({ from: first.name, to: pending.at(-1)?.name, migrations: pending.length }, "migrating the database");
    for (const migration of pending) {
      await apply(client, migration, file === null ? remoteSql(migration) : migration.sql);
    }
  } catch (error) {
    if (isBusy(error)) throw new UserError("The database is in use by another process. Stop it and restart.");
    if (isStorageFailure(error)) {
      throw new UserError(
        `The database cannot be migrated: ${(error as Error).message}. Is the disk full or read-only?`,
      );
    }
    throw error;
  } finally {
    client.close();
  }
}

/**
 * The usual case: nothing to do. Checked without the client, whose network code takes longer to load than everything
 * else.
 */
function isCurrent(file: string, migrations: Migration[]): boolean {
  if (!existsSync(file)) return false;
  const database = new Sqlite(file, { timeout: 5000 });
  try {
    const applied = database.prepare("SELECT name, sha256 FROM _migrations ORDER BY name").all() as Applied[];
    return pendingOf(sorted(migrations), applied).length === 0;
  } catch (error) {
    if (error instanceof UserError) throw error;
    // The table does not exist yet, or a fault that the full procedure reports better.
    return false;
  } finally {
    database.close();
  }
}

export const sorted = (migrations: Migration[]) => migrations.toSorted((a, b) => (a.name < b.name ? -1 : 1));

/** The missing migrations; refuses a history that is not a prefix of ours. */
export function pendingOf(migrations: Migration[], applied: Applied[]): Migration[] {
  for (const [i, { name, sha256: recorded }] of applied.entries()) {
    if (!migrations.some((one) => one.name === name)) {
      throw new NewerDatabase(
        `The database is newer than this vodbox: it has the migration ${name}. Run the version that wrote it, or a ` +
          "later one; or restore the copy written before the migration (next to the database, *.before-*).",
      );
    }
    const migration = migrations[i];
    if (migration?.name !== name) {
      throw new UserError(
        `The database has the migration ${name} but not ${migration?.name}, which precedes it: its history differs.`,
      );
    }
    if (sha256(migration.sql) !== recorded) {
      throw new UserError(
        `The migration ${name} has changed since it was applied to this database. Run the vodbox that applied it, or an official build.`,
      );
    }
  }
  return migrations.slice(applied.length);
}

async function appliedTo(client: Client): Promise<Applied[]> {
  const { rows } = await client.execute("SELECT 1 FROM sqlite_schema WHERE name = '_migrations'");
  if (rows.length === 0) return [];
  const applied = await client.execute("SELECT name, sha256 FROM _migrations ORDER BY name");
  return applied.rows.map((row) => ({ name: String(row.name), sha256: String(row.sha256) }));
}

async function isEmpty(client: Client): Promise<boolean> {
  return (await client.execute("SELECT 1 FROM sqlite_schema LIMIT 1")).rows.length === 0;
}

/** Two first starts on one remote database migrate one after the other: the second finds it done. */
async function apply(client: Client, { name, sql }: Migration, executed: string): Promise<void> {
  const tx = await beginTransaction(client);
  try {
    // Works on a remote server, where PRAGMA foreign_keys cannot be switched off for one stream.
    await tx.execute("PRAGMA defer_foreign_keys = ON");
    await tx.executeMultiple(
      "CREATE TABLE IF NOT EXISTS _migrations (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT",
    );
    const done = await tx.execute({ sql: "SELECT 1 FROM _migrations WHERE name = ?", args: [name] });
    if (done.rows.length > 0) return;
    await tx.executeMultiple(executed);
    if (tx.closed) throw new Error(`The migration ${name} ended its own transaction.`);
    await checkForeignKeys(tx, name);
    await tx.execute({
      sql: "INSERT INTO _migrations (name, sha256, applied_at) VALUES (?, ?, ?)",
      args: [name, sha256(sql), new Date().toISOString()],
    });
    await tx.commit();
  } finally {
    tx.close();
  }
}

/**
 * A write transaction; a local file's client waits by itself, a remote server may immediately report that another one
 * writes.
 */
async function beginTransaction(client: Client): Promise<Transaction> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await client.transaction("write");
    } catch (error) {
      if (!isBusy(error) || attempt >= MAX_TRIES) throw error;
      await backoff(attempt);
    }
  }
}

async function checkForeignKeys(tx: Transaction, name: string): Promise<void> {
  const { rows } = await tx.execute("PRAGMA foreign_key_check");
  const table = rows[0]?.table;
  if (table !== undefined) throw new Error(`The migration ${name} left rows in ${table} with dangling references.`);
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
