import { sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { sleep, withoutStatement } from "#lib/base";
import { TENANTS } from "#model/object-keys.ts";
import { storeDriver } from "#platform/config/stores.ts";
import { disagreement, storageLocationOf } from "../migration/storage-location.ts";

/** A health check does not wait for the database as long as other requests. */
const ANSWER_MS = 5000;

/**
 * The result of one check. `fixed` counts corrections; a finding that is not `ok` describes what is left. A `warning`
 * is not a fault, but `detail` still says what to do.
 */
export type Finding = { check: string; ok: boolean; detail: string; fixed: number; warning?: true };

/**
 * Describes the result and counts what was fixed. Throws Error for a remaining fault, with a message for the operator.
 */
export type Check = () => Promise<string | (Omit<Finding, "check" | "ok"> & { ok?: boolean })>;

export async function runCheck(check: string, look: Check): Promise<Finding> {
  try {
    const result = await look();
    return typeof result === "string" ? { check, ok: true, detail: result, fixed: 0 } : { check, ok: true, ...result };
  } catch (error) {
    return { check, ok: false, detail: reasonOf(error), fixed: 0 };
  }
}

export const reasonOf = (error: unknown): string => withoutStatement(error as Error).message;

/** Checks that database and storage respond. */
export async function databaseResponds(app: App): Promise<Finding[]> {
  const { objects } = app;
  const database = await runCheck("database", async () => {
    const late = sleep(ANSWER_MS, undefined, { ref: false }).then(() => {
      throw new Error(`The database did not respond within ${ANSWER_MS / 1000} s.`);
    });
    await Promise.race([app.db.get(sql`select count(*) from _migrations`), late]);
    return "answers";
  });
  if (!objects) return [database];
  const storage = await runCheck("storage", async () => {
    await objects.check();
    return `${objects.kind} storage reads and writes objects`;
  });
  return [database, storage];
}

/**
 * Detects a database without tenants next to objects of tenants: it was lost, and the server started with an empty one.
 * Every object is unreferenced then, so this finding comes first. Empty when there is no such sign, or when it cannot
 * be determined.
 */
export async function lostRows({ db, objects, config }: App): Promise<Finding[]> {
  if (!objects) return [];
  try {
    if ((await db.all(sql`select 1 from tenants limit 1`)).length > 0) return [];
    if ((await objects.list(TENANTS, { limit: 1 })).objects.length === 0) return [];
  } catch {
    return [];
  }
  const { isInDataDir, container } = storeDriver(objects.kind);
  const where = isInDataDir ? config.data_dir : `the ${container}`;
  const detail = `the database has no tenant, but ${where} contains objects of tenants: it is not the database of these objects. Stop the server and restore a backup or the database file. Do not run doctor --fix: it would treat all objects as unreferenced`;
  return [{ check: "lost database", ok: false, detail, fixed: 0 }];
}

/** Checks that storage is where the settings say, or that a migration is in progress. Throws otherwise. */
export async function agreeOnStorage({ db, config }: App): Promise<string> {
  if (config.storage === "none") return "object storage is disabled";
  const location = await storageLocationOf(db);
  const fault = disagreement(location, config.storage) ?? location?.error;
  if (fault) throw new Error(fault);
  if (!location || location.phase === "settled") return `objects are in ${config.storage} storage, as configured`;
  return `storage is being migrated: ${location.phase}${location.paused ? ", paused" : ""}`;
}
