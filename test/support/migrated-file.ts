import { chmodSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { embeddedMigrations } from "#src/lib/executable/embedded.ts";
import { migrate } from "#storage/db/migrate.ts";
import { newFolder, removeFolder } from "./folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Path of a database file that was only migrated to the newest schema. */
    migratedFile: string;
  }
}

/** Before all tests: migrating a file takes most of the time of a start, and hundreds of tests start from an empty one. */
export default async function setup(project: TestProject): Promise<() => void> {
  const folder = newFolder();
  const file = join(folder, "migrated.db");
  await migrate({ url: `file:${file}`, migrations: embeddedMigrations() });
  // The mode that the server creates it with, which copies keep.
  chmodSync(file, 0o600);
  project.provide("migratedFile", file);
  return () => removeFolder(folder);
}
