import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import type { Arch } from "../build/base.ts";
import { cache, type Recipes } from "./cached.ts";

/** The npm package with our ffmpeg for a processor, which a release contains. */
export const ffmpegPackage = (arch: Arch): string => `@vodbox/ffmpeg-linux-${arch}`;

/** Files of the package that are not of the build. */
export const PACKAGE_FILES = ["package.json", "README.md"];

type Manifest = { vodbox?: { build?: unknown } };

/**
 * Puts the programs of an installed package into the cache, under the name of their build, unless they are there: a build then uses
 * them as its own, until Debian has a newer source. Only a build of one of these recipes counts.
 */
export function usePackaged(arch: Arch, recipes: Recipes, modules: string): void {
  const folder = join(modules, ffmpegPackage(arch));
  const build = buildOf(folder);
  const isWanted = Object.values(recipes).some((recipe) => build?.endsWith(`-${recipe}`));
  if (build === null || !isWanted || existsSync(join(cache, build))) return;
  mkdirSync(cache, { recursive: true });
  const staging = mkdtempSync(join(cache, "package-"));
  try {
    const names = readdirSync(folder).filter((name) => !PACKAGE_FILES.includes(name));
    for (const name of names) copyFileSync(join(folder, name), join(staging, name));
    chmodSync(join(staging, "ffmpeg"), 0o755);
    // It runs what it is called as.
    linkSync(join(staging, "ffmpeg"), join(staging, "ffprobe"));
    renameSync(staging, join(cache, build));
  } catch (error) {
    // Another build has done the same meanwhile.
    if (!existsSync(join(cache, build))) throw error;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** The name of the build in a package; null without one. */
function buildOf(folder: string): string | null {
  try {
    const { vodbox } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
    const build = vodbox?.build;
    return typeof build === "string" && /^\w[\w.+~-]*$/.test(build) ? build : null;
  } catch {
    return null;
  }
}
