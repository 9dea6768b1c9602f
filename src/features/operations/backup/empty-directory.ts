import { existsSync, readdirSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { ensureDataDir, type SecretName } from "#platform/config/secrets.ts";
import { acquireDataLock, isLocked } from "#storage/db/lock.ts";
import { isRestoreUnfinished, WORK } from "./resume-restore.ts";
import { syncFolder } from "./write.ts";

/** Files in the work directory: the database, and each secret as `secrets-<name>`. */
export type Prepared<T> = { database: string; secrets: readonly SecretName[]; result: T };

const isNothing = (name: string) => /^(server\.(lock|pid).*|lost\+found)$/.test(name) || name === WORK;

/** Throws UserError when the settings name a database elsewhere. */
export function requireLocalDatabase({ database_url }: Pick<Config, "database_url">): void {
  if (database_url !== undefined)
    throw new UserError(
      "A backup is restored to a database file in the data directory. Unset VODBOX_DATABASE_URL, restore, copy the database to its server, then set it again.",
    );
}

/**
 * Restores the empty data directory `dir` from what `prepare` writes to a work directory. The database is moved last, so
 * a directory with a database is complete. After an interruption it can be repeated: remains of the first attempt are
 * deleted. Throws UserError when the directory is not empty or in use.
 */
export async function intoEmptyDirectory<T>(dir: string, prepare: (work: string) => Promise<Prepared<T>>): Promise<T> {
  ensureDataDir(dir);
  // Checked before the lock file is created, which would remain in a directory that belongs to another program.
  if (!isRestoreUnfinished(dir) && !isLocked(dir)) await requireEmpty(dir);
  const lock = acquireDataLock(dir);
  const work = join(dir, WORK);
  try {
    await requireEmpty(dir);
    await rm(work, { recursive: true, force: true });
    await mkdir(work, { mode: 0o700 });
    const { database, secrets, result } = await prepare(work);
    if (secrets.length > 0) await mkdir(join(dir, "secrets"), { mode: 0o700 });
    for (const name of secrets) await rename(join(work, `secrets-${name}`), join(dir, "secrets", name));
    if (secrets.length > 0) await syncFolder(join(dir, "secrets"));
    await syncFolder(dir);
    await rename(database, join(dir, "vodbox.db"));
    await syncFolder(dir);
    await rm(work, { recursive: true, force: true });
    return result;
  } catch (error) {
    // Without a database, a later attempt cannot mistake the directory for a complete one.
    if (!existsSync(join(dir, "vodbox.db"))) await clear(dir).catch(() => {});
    throw error;
  } finally {
    lock.release();
  }
}

async function requireEmpty(dir: string): Promise<void> {
  if (isRestoreUnfinished(dir)) await clear(dir);
  const entries = readdirSync(dir).filter((name) => !isNothing(name));
  if (entries.length > 0)
    throw new UserError(
      `The data directory ${dir} is not empty: it contains ${entries.slice(0, 3).join(", ")}${entries.length > 3 ? " …" : ""}. Choose an empty directory with --data.`,
    );
}

async function clear(dir: string): Promise<void> {
  if (!existsSync(join(dir, WORK))) return;
  for (const name of ["objects", "secrets", WORK]) await rm(join(dir, name), { recursive: true, force: true });
}
