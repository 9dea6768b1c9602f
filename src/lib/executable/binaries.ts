import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { UserError } from "#lib/base";
import { cacheDir } from "./cache-dir.ts";
import { packedIndex, unpacked } from "./extract.ts";

export type BinarySettings = { ffmpeg?: string | undefined; ffprobe?: string | undefined; cacheDir: string };
export type Binaries = { ffmpeg: string; ffprobe: string; origin: "setting" | "bundled" | "path" };
type Tool = "ffmpeg" | "ffprobe";
const LAUNCHER = "vodbox-sandbox";
type BuiltLibrary = "libgomp.so.1" | "whisper-avx2.so";
type Built = Tool | typeof LAUNCHER | BuiltLibrary;

/**
 * The ffmpeg and ffprobe to run: those of the settings, else the ones in this executable, else those on PATH. A setting
 * for one of them does not affect the other.
 */
export async function resolveBinaries(settings: BinarySettings): Promise<Binaries> {
  const ffmpeg = resolve("ffmpeg", settings);
  const ffprobe = resolve("ffprobe", settings);
  const origins = [ffmpeg.origin, ffprobe.origin];
  const origin = (["setting", "path"] as const).find((each) => origins.includes(each)) ?? "bundled";
  return { ffmpeg: ffmpeg.path, ffprobe: ffprobe.path, origin };
}

/** The same without blocking the event loop: querying their versions extracts embedded files in another process. */
export async function binariesAside(settings: BinarySettings): Promise<Binaries> {
  // Errors are reported below.
  if (isSea()) await promisify(execFile)(process.execPath, ["--version"]).catch(() => {});
  return resolveBinaries(settings);
}

function resolve(tool: Tool, settings: BinarySettings): { path: string; origin: Binaries["origin"] } {
  const variable = `VODBOX_${tool.toUpperCase()}`;
  const chosen = settings[tool];
  if (chosen) {
    const path = chosen.includes("/") ? (isExecutable(chosen) ? chosen : null) : onPath(chosen);
    if (path) return { path, origin: "setting" };
    throw new UserError(
      `${variable} is ${chosen}, which is not an executable file. Correct it, or unset it to use the bundled ${tool}.`,
    );
  }
  const bundled = isSea() ? carried(tool, settings.cacheDir) : built(tool);
  if (bundled) return { path: bundled, origin: "bundled" };
  const path = onPath(tool);
  if (path) return { path: path, origin: "path" };
  throw new UserError(
    `There is no ${tool}: it is neither bundled nor on PATH. Install ffmpeg, or set ${variable} to its path.`,
  );
}

/** A library that is built for this system's processor; null when the build had no compiler for it. */
export const builtLibrary = (name: BuiltLibrary): string | null => (isSea() ? carried(name, cacheDir()) : built(name));

/** The program that confines ffmpeg (sandbox/launcher.c); null when the build had no compiler for it. */
export const sandboxLauncher = (): string | null => (isSea() ? carried(LAUNCHER, cacheDir()) : built(LAUNCHER));

const carried = (tool: Built, cache: string) => (packedIndex()[tool] ? unpacked(tool, cache) : null);

/** When run from sources: `npm run build` puts the same programs here. */
function built(tool: Built): string | null {
  const path = fileURLToPath(new URL(`../../../build/assets/bin/${tool}`, import.meta.url));
  return existsSync(path) ? path : null;
}

function onPath(name: string): string | null {
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
