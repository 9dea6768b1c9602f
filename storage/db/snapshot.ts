import { open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Client } from "@libsql/client";
import { UserError } from "#lib/base";
import { isStorageFailure } from "./failures.ts";

const SNAPSHOTS_KEPT = 3;

/**
 * Copies the database to `<file>.before-<name>` and keeps the newest three copies. VACUUM INTO blocks the process: only
 * during start-up, before requests are answered.
 */
export async function snapshot(client: Client, file: string, name: string): Promise<string> {
  const path = `${file}.before-${name.replace(/\.sql$/, "")}`;
  const unfinished = `${path}.tmp`;
  await rm(unfinished, { force: true });
  try {
    // Created before SQLite could create it with another mode.
    await (await open(unfinished, "wx", 0o600)).close();
    await client.execute({ sql: "VACUUM INTO ?", args: [unfinished] });
    await syncPath(unfinished);
  } catch (error) {
    await rm(unfinished, { force: true });
    if (!isStorageFailure(error)) throw error;
    throw new UserError(`There is not enough disk space to copy ${file} before the migration. Free some and restart.`);
  }
  await rename(unfinished, path);
  await syncPath(dirname(file));
  await prune(file);
  return path;
}

/** Migrations are numbered, so the names of their snapshots sort by age. */
async function prune(file: string): Promise<void> {
  const prefix = `${basename(file)}.before-`;
  const all = (await readdir(dirname(file))).filter((name) => name.startsWith(prefix)).sort();
  const finished = all.filter((name) => !name.endsWith(".tmp"));
  const old = finished.slice(0, -SNAPSHOTS_KEPT);
  for (const name of all) {
    if (name.endsWith(".tmp") || old.includes(name)) await rm(join(dirname(file), name), { force: true });
  }
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
