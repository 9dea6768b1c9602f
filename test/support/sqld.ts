import { cpSync, existsSync } from "node:fs";
import { inject } from "vitest";
import { type Sqld, startSqld as start } from "#scripts/sqld.ts";
import { atEnd } from "./folder.ts";

export type { Sqld } from "#scripts/sqld.ts";

/** A real remote database in `folder`, with the data of an earlier one; it ends with the test. */
export async function startSqld(folder: string, options: { keyFile?: string } = {}): Promise<Sqld> {
  const sqld = await start(folder, options);
  atEnd(sqld.stop);
  return sqld;
}

/**
 * The same with the newest schema: migrating takes five times as long as starting. An existing directory is used as it
 * is.
 */
export function migratedSqld(folder: string): Promise<Sqld> {
  if (!existsSync(folder)) cpSync(inject("migratedSqld"), folder, { recursive: true });
  return startSqld(folder);
}
