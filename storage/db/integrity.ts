import { join } from "node:path";
import Sqlite from "libsql";
import { DAMAGED_ADVICE, isDamaged } from "./failures.ts";
import { databaseFile } from "./open.ts";

/** Runs SQLite's integrity check on a local database. Throws an Error with the first faults. Reads the whole file. */
export async function integrityOf(url: string | undefined, dataDir: string): Promise<string> {
  const file = url === undefined ? join(dataDir, "vodbox.db") : databaseFile(url);
  if (file === null) return "a remote server checks its own files";
  const connection = new Sqlite(file, { readonly: true } as Sqlite.Options);
  try {
    const rows = connection.prepare("PRAGMA integrity_check(5)").all() as { integrity_check: string }[];
    const faults = rows.map((row) => row.integrity_check).filter((text) => text !== "ok");
    if (faults.length > 0) throw new Error(`${file} is damaged: ${faults.join("; ")}; ${DAMAGED_ADVICE}`);
    return `${file} is intact`;
  } catch (error) {
    if (!isDamaged(error)) throw error;
    throw new Error(`${file} is damaged (${(error as Error).message}); ${DAMAGED_ADVICE}`, { cause: error });
  } finally {
    connection.close();
  }
}
