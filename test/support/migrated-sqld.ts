import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { embedded, embeddedNames } from "../../src/lib/embedded.ts";
import { migrate } from "../../storage/db/migrate.ts";
import { newFolder, removeFolder } from "./folder.ts";
import { startSqld } from "./sqld.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** What a server left behind that had been given the newest schema and nothing else. */
    migratedSqld: string;
  }
}

/** Before all tests over a remote database. */
export default async function setup(project: TestProject): Promise<() => void> {
  const folder = newFolder();
  const server = await startSqld(join(folder, "sqld"));
  const migrations = embeddedNames("migrations/").map((name) => ({
    name: name.slice("migrations/".length),
    sql: embedded(name).toString("utf8"),
  }));
  await migrate({ url: server.url, migrations });
  await server.stop();
  project.provide("migratedSqld", join(folder, "sqld"));
  return () => removeFolder(folder);
}
