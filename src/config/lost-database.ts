import { type Dirent, opendirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { contentsOf } from "../../storage/db/database-contents.ts";
import { UserError } from "../lib/errors.ts";
import { databaseFileOf } from "./database-file.ts";
import type { Config } from "./load.ts";

type Place = Pick<Config, "data_dir" | "database_url">;

/** Storage checks write and delete this object; a crash may leave it on a fresh installation. */
const PROBE = /^vodbox-check/;

/** What is left of an earlier database in the data directory, as words for a sentence; null when nothing is. */
function leftIn(dataDir: string, contents: "nothing" | "unused"): string | null {
  const hasObjects = holdsFile(join(dataDir, "objects"));
  // The first start creates secrets before any tenant exists.
  const hasSecrets = contents === "nothing" && namesIn(join(dataDir, "secrets")).length > 0;
  const found = [...(hasObjects ? ["objects"] : []), ...(hasSecrets ? ["secrets"] : [])];
  return found.length > 0 ? found.join(" and ") : null;
}

/**
 * Why the database of this data directory looks lost, in a sentence: it holds objects or secrets, but the database is not
 * there, has no tables, or never held a tenant. Null when all is well. A database on a remote server is not looked at.
 */
export function lostDatabase(config: Place): string | null {
  const file = databaseFileOf(config);
  if (file === null) return null;
  const { contents, isWanted } = contentsOf(file);
  if (contents === "data" || (contents === "unused" && isWanted)) return null;
  const left = leftIn(config.data_dir, contents);
  if (left === null) return null;
  const state = contents === "unused" ? `${file} has never held a tenant` : `${file} is missing or empty`;
  return sentence(`The data directory ${config.data_dir} holds ${left}, but the database ${state}`);
}

/** The same for a remote database without tables; null where the data directory is fresh. */
export function lostRemoteDatabase(config: Place): string | null {
  const left = leftIn(config.data_dir, "nothing");
  if (left === null) return null;
  return sentence(
    `The data directory ${config.data_dir} holds ${left}, but the database of VODBOX_DATABASE_URL is empty`,
  );
}

const sentence = (what: string) =>
  `${what}: put the database back, restore a backup into an empty directory, or name the right directory with --data; only vodbox serve --allow-empty-database begins with an empty database, to which these objects are unknown.`;

/** Throws UserError where the database looks lost. */
export function refuseLostDatabase(config: Place): void {
  const lost = lostDatabase(config);
  if (lost !== null) throw new UserError(lost);
}

function holdsFile(folder: string): boolean {
  return entriesOf(folder).some((entry) =>
    entry.isDirectory() ? holdsFile(join(folder, entry.name)) : !PROBE.test(entry.name),
  );
}

/** Lazy: a folder may have a million entries, and the first file is enough. */
function* entriesOf(folder: string): Generator<Dirent> {
  let open: ReturnType<typeof opendirSync>;
  try {
    open = opendirSync(folder);
  } catch {
    return;
  }
  try {
    for (let entry = open.readSync(); entry !== null; entry = open.readSync()) yield entry;
  } finally {
    open.closeSync();
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
