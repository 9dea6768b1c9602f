import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import Sqlite from "libsql";
import { onTestFinished } from "vitest";
import { openDatabase } from "#storage/db/open.ts";

export const notes = sqliteTable("notes", { id: integer().primaryKey(), body: text().notNull().unique() });

/** A directory that is deleted with the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "vodbox-test-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A database with an empty table of notes. */
export async function notesDatabase(options: { lockWaitMs?: number; workLimitMs?: number; at?: string } = {}) {
  const { at = folder(), ...limits } = options;
  const file = join(at, "test.db");
  const database = await openDatabase({ url: `file:${file}`, ...limits });
  onTestFinished(() => database.close());
  await database.write((tx) =>
    tx.run(sql`CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE) STRICT`),
  );
  return { ...database, file };
}

/** A connection with the bare library, like that of another process. */
export function bare(file: string): Sqlite.Database {
  const connection = new Sqlite(file, { timeout: 0 });
  onTestFinished(() => {
    if (connection.open) connection.close();
  });
  return connection;
}

/** The content of the file, read on a new connection. */
export function stored(file: string): string[] {
  const connection = new Sqlite(file, { timeout: 0 });
  try {
    return (connection.prepare("SELECT body FROM notes ORDER BY id").all([]) as { body: string }[]).map((r) => r.body);
  } finally {
    connection.close();
  }
}
