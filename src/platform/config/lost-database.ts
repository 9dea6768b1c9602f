import { type Dirent, opendirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "#lib/base";
import { PROBE } from "#model/object-keys.ts";
import { contentsOf } from "#storage/db/database-contents.ts";
import { databaseFileOf } from "./database-file.ts";
import type { Config } from "./load.ts";

type DataLocation = Pick<Config, "data_dir" | "database_url">;

/** Remains of an earlier database in the data directory, worded for a sentence; null when there are none. */
function remainsIn(dataDir: string, contents: "nothing" | "unused"): string | null {
  const hasObjects = holdsFile(join(dataDir, "objects"));
  // The first start creates secrets before any tenant exists.
  const hasSecrets = contents === "nothing" && namesIn(join(dataDir, "secrets")).length > 0;
  const remains = [...(hasObjects ? ["objects"] : []), ...(hasSecrets ? ["secrets"] : [])];
  return remains.length > 0 ? remains.join(" and ") : null;
}

/**
 * Reports why the database of this data directory looks lost: objects or secrets exist, but the database is missing,
 * has no tables, or never had a tenant. Null when there is no such sign. A remote database is not inspected.
 */
export function lostDatabase(config: DataLocation): string | null {
  const file = databaseFileOf(config);
  if (file === null) return null;
  const otherKind = otherThanFile(file);
  if (otherKind !== null) return otherKind;
  const { contents, isWanted } = contentsOf(file);
  if (contents === "data" || (contents === "unused" && isWanted)) return null;
  const left = remainsIn(config.data_dir, contents);
  if (left === null) return null;
  const state = contents === "unused" ? `${file} contains no tenant` : `${file} is missing or empty`;
  return sentence(`The data directory ${config.data_dir} contains ${left}, but the database ${state}`);
}

/** The same check for a remote database without tables; null when the data directory is new. */
export function lostRemoteDatabase(config: DataLocation): string | null {
  const left = remainsIn(config.data_dir, "nothing");
  if (left === null) return null;
  return sentence(
    `The data directory ${config.data_dir} contains ${left}, but the database of VODBOX_DATABASE_URL is empty`,
  );
}

const sentence = (remains: string) =>
  `${remains}: restore the database file, restore a backup into an empty directory, or set the correct directory with --data. To start with an empty database, which does not know these objects, run vodbox serve --allow-empty-database.`;

/** SQLite would report only the number of its error for a directory in the place of the database. */
function otherThanFile(file: string): string | null {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() ?? true) return null;
  return `${file} is not a file: move it away and restore the database file or a backup, or set the correct directory with --data.`;
}

/** Throws UserError when the database looks lost; with `allowEmpty` only when none can be created in its place. */
export function refuseLostDatabase(config: DataLocation, { allowEmpty = false } = {}): void {
  const file = databaseFileOf(config);
  const reason = allowEmpty ? file && otherThanFile(file) : lostDatabase(config);
  if (reason) throw new UserError(reason);
}

function holdsFile(folder: string): boolean {
  return entriesOf(folder).some((entry) =>
    // A crash may leave the object of a storage check in a new installation.
    entry.isDirectory() ? holdsFile(join(folder, entry.name)) : !entry.name.startsWith(PROBE),
  );
}

/** Reads lazily: a directory may have a million entries, and the first file decides. */
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
