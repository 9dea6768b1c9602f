import { open } from "node:fs/promises";
import Sqlite from "libsql";
import AsyncDatabase from "libsql/promise";
import type { Migration } from "./migrate.ts";
import { pendingOf, sorted } from "./migrate.ts";
import type { StorageLocationRow } from "./schema.ts";

/**
 * Creates a consistent copy of the database `from` as the new file `to`, on another thread; writers continue. The
 * removal holds for the copy are not part of it. Throws SQLite's errors.
 */
export async function copyDatabase(from: string, to: string): Promise<void> {
  const source = new Sqlite(from, { timeout: 5000 });
  try {
    // libsql's two APIs share the native handle, in `db`; only this one runs it on a thread of its pool.
    const { exec } = AsyncDatabase.prototype as unknown as { exec(this: unknown, sql: string): Promise<void> };
    await exec.call(source, `VACUUM INTO '${to.replaceAll("'", "''")}'`);
  } finally {
    source.close();
  }
  await changing(to, "DELETE FROM removal_holds");
}

/** Objects of a restored database are in the storage of the settings, whatever an earlier migration recorded. */
export const clearStorageLocation = (file: string) => changing(file, "DELETE FROM storage_place");

/** Changes a database that no one else has open, and syncs it. */
async function changing(path: string, sql: string): Promise<void> {
  const database = new Sqlite(path);
  try {
    database.exec(sql);
  } finally {
    database.close();
  }
  const file = await open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

const COUNTED = ["tenants", "assets", "uploads", "transcoding_jobs", "subtitles", "events", "audit_entries"] as const;

/** The newest migration of the database, and the row counts of its main tables. */
export function describeDatabase(file: string): { schema: string; counts: Record<string, number> } {
  return reading(file, (all) => ({
    schema: all<{ name: string }>("SELECT name FROM _migrations ORDER BY name DESC LIMIT 1")[0]?.name ?? "",
    counts: Object.fromEntries(
      COUNTED.map((table) => [table, all<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)[0]?.count ?? 0]),
    ),
  }));
}

/** Faults of the database itself; empty when it is intact. Throws UserError for one newer than `migrations`. */
export function faultsOf(file: string, migrations: Migration[]): string[] {
  return reading(file, (all) => {
    pendingOf(sorted(migrations), all("SELECT name, sha256 FROM _migrations ORDER BY name"));
    const integrity = all<{ integrity_check: string }>("PRAGMA integrity_check(5)")
      .map((row) => row.integrity_check)
      .filter((text) => text !== "ok");
    const dangling = all<{ table: string }>("PRAGMA foreign_key_check");
    return [
      ...integrity,
      ...(dangling.length > 0
        ? [`${dangling.length} rows have dangling references, the first in ${dangling[0]?.table}`]
        : []),
    ];
  });
}

function reading<T>(file: string, work: (all: <R>(sql: string) => R[]) => T): T {
  const database = new Sqlite(file, { readonly: true } as Sqlite.Options);
  try {
    return work(<R>(sql: string) => database.prepare(sql).all([]) as R[]);
  } finally {
    database.close();
  }
}

/** The active store by the record of migrations; undefined without a record. */
export const storageLocationIn = (file: string) =>
  reading(
    file,
    (all) =>
      all<Pick<StorageLocationRow, "active" | "other" | "phase">>(
        "SELECT active, other, phase FROM storage_place WHERE id = 1",
      )[0],
  );
