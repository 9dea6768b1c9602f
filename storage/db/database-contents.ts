import { existsSync, statSync } from "node:fs";
import Sqlite from "libsql";

/**
 * Contents of a local database. `nothing`: there is no file, or it has no tables. `unused`: it has tables, but never
 * had a tenant, to which everything else belongs. `data`: anything else, including a damaged file, which a start
 * reports by itself.
 */
export type Contents = "nothing" | "unused" | "data";

/** Value of SQLite's user_version, which every copy of the file keeps: the operator accepted this empty database. */
const WANTED_EMPTY = 1;

/** Reads `file` and changes nothing. `isWanted`: see `markWanted`. */
export function contentsOf(file: string): { contents: Contents; isWanted: boolean } {
  if (!existsSync(file) || statSync(file).size === 0) return { contents: "nothing", isWanted: false };
  try {
    return reading(file);
  } catch {
    return { contents: "data", isWanted: false };
  }
}

function reading(file: string): ReturnType<typeof contentsOf> {
  const database = new Sqlite(file, { readonly: true, timeout: 5000 } as Sqlite.Options);
  const first = (sql: string) => database.prepare(sql).all([])[0] as Record<string, unknown> | undefined;
  const hasTable = (name: string) => first(`SELECT 1 FROM sqlite_schema WHERE name = '${name}'`) !== undefined;
  try {
    const isWanted = first("PRAGMA user_version")?.user_version === WANTED_EMPTY;
    if (first("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined) return { contents: "nothing", isWanted };
    // AUTOINCREMENT leaves a row in sqlite_sequence, so deleted tenants count too.
    const hadTenants =
      hasTable("sqlite_sequence") && first("SELECT 1 FROM sqlite_sequence WHERE name = 'tenants'") !== undefined;
    const isUnused = hasTable("_migrations") && !hadTenants;
    return { contents: isUnused ? "unused" : "data", isWanted };
  } finally {
    database.close();
  }
}

/** Records in `file` that the operator accepted an empty database next to objects or secrets of an earlier one. */
export function acceptEmptyDatabase(file: string): void {
  const database = new Sqlite(file, { timeout: 5000 });
  try {
    database.exec(`PRAGMA user_version = ${WANTED_EMPTY}`);
  } finally {
    database.close();
  }
}
