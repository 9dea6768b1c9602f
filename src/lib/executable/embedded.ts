import { readdirSync, readFileSync } from "node:fs";
import { getAssetKeys, getRawAsset, isSea } from "node:sea";

/**
 * Access to the files embedded in the executable (migrations, web assets, native library, ffmpeg). When run from
 * sources, they are in `build/assets`, where `npm run build:assets` writes them under the same names.
 */
const folder = () => new URL("../../../build/assets/", import.meta.url);

/** The bytes of asset `name`, such as `migrations/0001_spine.sql`. Throws when it does not exist. */
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

/** The schema migrations by name. */
export const embeddedMigrations = (): { name: string; sql: string }[] =>
  embeddedNames("migrations/").map((name) => ({
    name: name.slice("migrations/".length),
    sql: embedded(name).toString("utf8"),
  }));

/**
 * The version of this program, such as `0.2.0`.
 * @example
 * /^\d+\.\d+\.\d+$/.test(programVersion()) // => true
 */
export const programVersion = (): string =>
  (JSON.parse(embedded("build-info.json").toString()) as { version: string }).version;
