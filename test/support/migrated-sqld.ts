import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { embeddedMigrations } from "#src/lib/executable/embedded.ts";
import { migrate } from "#storage/db/migrate.ts";
import { newFolder, removeFolder } from "./folder.ts";
import { startSqld } from "./sqld.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The data of a server that was only migrated to the newest schema. */
    migratedSqld: string;
  }
}

/** Before all tests over a remote database. */
export default async function setup(project: TestProject): Promise<() => void> {
  const folder = newFolder();
  const server = await startSqld(join(folder, "sqld"));
  await migrate({ url: server.url, migrations: embeddedMigrations() });
  await server.stop();
  project.provide("migratedSqld", join(folder, "sqld"));
  return () => removeFolder(folder);
}
