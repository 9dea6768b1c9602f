import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildCache } from "./cache.ts";
import { installedVersion, nodeVersion, own, paths } from "./paths.ts";
import { run } from "./run.ts";

export type Arch = "x64" | "arm64";

/** The Node binary that vodbox is embedded in. */
export const nodeProgram = async (arch: Arch) => join(await npmPackage(`node-linux-${arch}`, nodeVersion), "bin/node");

/** libSQL's native library. */
export const libsqlLibrary = async (arch: Arch) =>
  join(await npmPackage(`@libsql/linux-${arch}-gnu`, installedVersion("libsql")), "index.node");

/** The version of whisper.cpp's library, for all processors. */
export const whisperVersion = own.optionalDependencies?.["@fugood/node-whisper-linux-x64"] ?? "";

/** whisper.cpp's native library. */
export const whisperLibrary = async (arch: Arch) =>
  join(await npmPackage(`@fugood/node-whisper-linux-${arch}`, whisperVersion), "index.node");

/** The directory of a package: the installed one, else (for another processor) downloaded from the registry once. */
async function npmPackage(name: string, version: string): Promise<string> {
  const installed = join(paths.modules, name);
  if (existsSync(installed) && installedVersion(name) === version) return installed;
  const target = join(buildCache, "npm", `${name.replace("/", "-")}-${version}`);
  if (existsSync(target)) return target;
  mkdirSync(join(buildCache, "npm"), { recursive: true });
  const work = mkdtempSync(join(buildCache, "npm/work-"));
  try {
    const packed = await run("npm", ["pack", "--silent", "--pack-destination", work, `${name}@${version}`]);
    await run("tar", ["-xzf", join(work, packed.trim()), "-C", work]);
    renameSync(join(work, "package"), target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return target;
}
