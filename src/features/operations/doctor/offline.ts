import { existsSync } from "node:fs";
import Sqlite from "libsql";
import { databaseFileOf } from "#platform/config/database-file.ts";
import type { Config } from "#platform/config/load.ts";
import { lostDatabase } from "#platform/config/lost-database.ts";
import { DAMAGED_ADVICE, isDamaged } from "#storage/db/failures.ts";
import { integrityOf } from "#storage/db/integrity.ts";
import { type Migration, pendingOf, sorted } from "#storage/db/migrate.ts";
import { isRestoreUnfinished } from "../backup/resume-restore.ts";
import { type Finding, runCheck } from "./finding.ts";

export type OfflineCheck = {
  findings: Finding[];
  /** Further checks would create a directory, migrate, or fail on damaged files. */
  isEnough: boolean;
};

const fault = (check: string, detail: string): Finding => ({ check, ok: false, detail, fixed: 0 });

/**
 * Checks a data directory that no server has locked, without creating or changing anything. Throws UserError for a
 * database of another history or a newer program, as a start would.
 */
export async function checkOffline(config: Config, migrations: Migration[]): Promise<OfflineCheck> {
  const { data_dir, database_url } = config;
  if (!existsSync(data_dir)) {
    const message = `the data directory ${data_dir} does not exist; set the correct one with --data`;
    return { findings: [fault("database", message)], isEnough: true };
  }
  const file = databaseFileOf(config);
  // A start reports more of these itself.
  if (file === null || isRestoreUnfinished(data_dir)) return { findings: [], isEnough: false };
  const reason = lostDatabase(config);
  if (reason !== null) return { findings: [fault("database", reason)], isEnough: true };
  const none = `${file} does not exist or is not a vodbox database; set the correct directory with --data, or restore a backup`;
  if (!existsSync(file)) return { findings: [fault("database", none)], isEnough: true };
  let applied: Parameters<typeof pendingOf>[1] | null;
  try {
    applied = appliedTo(file);
  } catch (error) {
    // A start reports a failing disk or a read-only directory better.
    if (!isDamaged(error)) return { findings: [], isEnough: false };
    const message = `${file} is damaged (${(error as Error).message}); ${DAMAGED_ADVICE}`;
    return { findings: [fault("integrity", message)], isEnough: true };
  }
  if (applied === null) return { findings: [fault("database", none)], isEnough: true };
  const pending = pendingOf(sorted(migrations), applied);
  const integrity = await runCheck("integrity", () => integrityOf(database_url, data_dir));
  if (pending.length === 0) return { findings: [integrity], isEnough: !integrity.ok };
  const detail = `the database is of an older vodbox and would be migrated by the next start, from ${pending[0]?.name} on; until then objects, ffmpeg and the rest are not looked at`;
  return { findings: [{ check: "schema", ok: true, detail, fixed: 0 }, integrity], isEnough: true };
}

/** Null when the table does not exist. */
function appliedTo(file: string) {
  const database = new Sqlite(file, { readonly: true, timeout: 5000 } as Sqlite.Options);
  try {
    const known = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_migrations'").get([]);
    if (known === undefined) return null;
    return database.prepare("SELECT name, sha256 FROM _migrations ORDER BY name").all([]) as Parameters<
      typeof pendingOf
    >[1];
  } finally {
    database.close();
  }
}
