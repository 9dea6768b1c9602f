import { readdirSync, readFileSync } from "node:fs";
import { getAssetKeys, getRawAsset, isSea } from "node:sea";

/**
 * The one door to files that travel inside the executable (migrations, web assets, native library, ffmpeg).
 * Run from sources they lie in `build/assets`, where `npm run build:assets` puts them under the same names.
 */
const folder = () => new URL("../../build/assets/", import.meta.url);

/** The bytes of asset `name`, such as `migrations/0001_spine.sql`. Throws when there is none. */
export function embedded(name: string): Buffer {
  return isSea() ? Buffer.from(getRawAsset(name)) : readFileSync(new URL(name, folder()));
}

/** Names of all assets that start with `prefix`, sorted. */
export function embeddedNames(prefix: string): string[] {
  const names = isSea()
    ? getAssetKeys()
    : readdirSync(folder(), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder().pathname.length));
  return names.filter((name) => name.startsWith(prefix)).sort();
}

/** The steps of the schema, by name. */
export const embeddedMigrations = (): { name: string; sql: string }[] =>
  embeddedNames("migrations/").map((name) => ({
    name: name.slice("migrations/".length),
    sql: embedded(name).toString("utf8"),
  }));
