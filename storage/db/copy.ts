import { open } from "node:fs/promises";
import Sqlite from "libsql";
import AsyncDatabase from "libsql/promise";
import type { Migration } from "./migrate.ts";
import { pendingOf, sorted } from "./migrate.ts";
import type { StorageLocationRow } from "./schema.ts";

/**
 * A consistent copy of the database `from` as the new file `to`, on another thread; writers go on meanwhile. Holds that
 * the copy was made under are none of the copy's. Throws what SQLite does.
 */
export async function copyDatabase(from: string, to: string): Promise<void> {
  const source = new Sqlite(from, { timeout: 5000 });
  try {
    // libsql's two faces hold the same native handle, in `db`; only this one runs it on a thread of its pool.
    const { exec } = AsyncDatabase.prototype as unknown as { exec(this: unknown, sql: string): Promise<void> };
    await exec.call(source, `VACUUM INTO '${to.replaceAll("'", "''")}'`);
  } finally {
    source.close();
  }
  await changing(to, "DELETE FROM removal_holds");
}

/** A restored database whose objects were put to the storage of the settings: no earlier migration has a say in where. */
export const clearStorageLocation = (file: string) => changing(file, "DELETE FROM storage_place");

/** Changes a database that nobody else has open, and syncs it. */
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

/** The newest migration that the database holds, and how many rows the tables have that people ask for. */
export function describeDatabase(file: string): { schema: string; counts: Record<string, number> } {
  return reading(file, (all) => ({
    schema: all<{ name: string }>("SELECT name FROM _migrations ORDER BY name DESC LIMIT 1")[0]?.name ?? "",
    counts: Object.fromEntries(
      COUNTED.map((table) => [table, all<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)[0]?.count ?? 0]),
    ),
  }));
}

/** What is wrong with the database itself, in words; none where it is sound. Throws UserError for one newer than `migrations`. */
export function faultsOf(file: string, migrations: Migration[]): string[] {
  return reading(file, (all) => {
    pendingOf(sorted(migrations), all("SELECT name, sha256 FROM _migrations ORDER BY name"));
    const integrity = all<{ integrity_check: string }>("PRAGMA integrity_check(5)")
      .map((row) => row.integrity_check)
      .filter((text) => text !== "ok");
    const dangling = all<{ table: string }>("PRAGMA foreign_key_check");
    return [
      ...integrity,
      ...(dangling.length > 0 ? [`${dangling.length} rows point nowhere, the first in ${dangling[0]?.table}`] : []),
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

/** Where objects lie by the record of migrations; undefined where none ever was. */
export const storageLocationIn = (file: string) =>
  reading(
    file,
    (all) =>
      all<Pick<StorageLocationRow, "active" | "other" | "phase">>(
        "SELECT active, other, phase FROM storage_place WHERE id = 1",
      )[0],
  );
