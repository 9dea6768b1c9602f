import { setTimeout as delay } from "node:timers/promises";
import { DrizzleQueryError, sql } from "drizzle-orm";
import type { App } from "../../../app.ts";
import { disagreement, storageLocationOf } from "../migration/storage-location.ts";

/** Whoever asks whether the database answers does not wait for as long as others do. */
const ANSWER_MS = 5000;

/**
 * One thing that was looked at. `mended` counts what was put right; what is not `ok` after that is left. A `warning` is no
 * fault, and `detail` says what to do about it all the same.
 */
export type Finding = { check: string; ok: boolean; detail: string; mended: number; warning?: true };

/** What was found, and how much of it was mended. Throws Error for a fault that is left, in words for the operator. */
export type Check = () => Promise<string | (Omit<Finding, "check" | "ok"> & { ok?: boolean })>;

export async function runCheck(check: string, look: Check): Promise<Finding> {
  try {
    const found = await look();
    return typeof found === "string" ? { check, ok: true, detail: found, mended: 0 } : { check, ok: true, ...found };
  } catch (error) {
    return { check, ok: false, detail: reasonOf(error), mended: 0 };
  }
}

/** A failed statement names itself, and the reason as its cause. */
export const reasonOf = (error: unknown): string =>
  (error instanceof DrizzleQueryError && error.cause ? error.cause : (error as Error)).message;

/** Database and storage answer. */
export async function databaseAnswers(app: App): Promise<Finding[]> {
  const { objects } = app;
  const database = await runCheck("database", async () => {
    const late = delay(ANSWER_MS, undefined, { ref: false }).then(() => {
      throw new Error(`The database does not answer within ${ANSWER_MS / 1000} s.`);
    });
    await Promise.race([app.db.get(sql`select count(*) from _migrations`), late]);
    return "answers";
  });
  if (!objects) return [database];
  const storage = await runCheck("storage", async () => {
    await objects.check();
    return `${objects.kind} storage takes and gives objects`;
  });
  return [database, storage];
}

/**
 * A database without a tenant next to objects of tenants: it was lost, and the server began with an empty one. Every object
 * is unreferenced then, so this is to be read before all else. Empty when all is well, or when that cannot be told.
 */
export async function lostRows({ db, objects, config }: App): Promise<Finding[]> {
  if (!objects) return [];
  try {
    if ((await db.all(sql`select 1 from tenants limit 1`)).length > 0) return [];
    if ((await objects.list("tenants/", { limit: 1 })).objects.length === 0) return [];
  } catch {
    return [];
  }
  const where = objects.kind === "s3" ? "the bucket" : config.data_dir;
  const detail = `the database holds no tenant, but ${where} holds objects of tenants: it is not the database that belongs to them. Stop the server and restore a backup, or put the database back; do not run doctor --fix, which takes all of them for unreferenced`;
  return [{ check: "lost database", ok: false, detail, mended: 0 }];
}

/** Storage is where the settings say, or on its way. Throws where it is not. */
export async function agreeOnStorage({ db, config }: App): Promise<string> {
  if (config.storage === "none") return "object storage is switched off";
  const place = await storageLocationOf(db);
  const fault = disagreement(place, config.storage) ?? place?.error;
  if (fault) throw new Error(fault);
  if (!place || place.phase === "settled") return `objects lie in ${config.storage} storage, as the settings say`;
  return `storage is being migrated: ${place.phase}${place.paused ? ", paused" : ""}`;
}
