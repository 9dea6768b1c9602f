import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { isSea } from "node:sea";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDir } from "../lib/cache-dir.ts";
import { UserError } from "../lib/errors.ts";
import { packedIndex, unpacked } from "../lib/extract.ts";

export type BinarySettings = { ffmpeg?: string | undefined; ffprobe?: string | undefined; cacheDir: string };
export type Binaries = { ffmpeg: string; ffprobe: string; origin: "setting" | "bundled" | "path" };
type Tool = "ffmpeg" | "ffprobe";
const LAUNCHER = "vodbox-sandbox";

/**
 * The ffmpeg and ffprobe to run: the operator's, else the ones this executable carries, else those on PATH. A setting
 * for one of them leaves the other where it would be without.
 */
export async function resolveBinaries(settings: BinarySettings): Promise<Binaries> {
  const ffmpeg = resolve("ffmpeg", settings);
  const ffprobe = resolve("ffprobe", settings);
  const origins = [ffmpeg.origin, ffprobe.origin];
  const origin = (["setting", "path"] as const).find((each) => origins.includes(each)) ?? "bundled";
  return { ffmpeg: ffmpeg.path, ffprobe: ffprobe.path, origin };
}

/** The same for who answers requests meanwhile: what is still packed another process unpacks, as it tells its versions. */
export async function binariesAside(settings: BinarySettings): Promise<Binaries> {
  // What it could not do is told below.
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
      `${variable} names ${chosen}, which is no executable file here. Correct it, or leave it out to use the ${tool} that vodbox carries.`,
    );
  }
  const bundled = isSea() ? carried(tool, settings.cacheDir) : built(tool);
  if (bundled) return { path: bundled, origin: "bundled" };
  const found = onPath(tool);
  if (found) return { path: found, origin: "path" };
  throw new UserError(
    `There is no ${tool}: this vodbox carries none and PATH has none. Install ffmpeg, or set ${variable} to the program.`,
  );
}

/** The program that confines ffmpeg (sandbox/launcher.c); null where the build had no compiler for it. */
export const sandboxLauncher = (): string | null => (isSea() ? carried(LAUNCHER, cacheDir()) : built(LAUNCHER));

const carried = (tool: Tool | typeof LAUNCHER, cache: string) => (packedIndex()[tool] ? unpacked(tool, cache) : null);

/** Run from sources, `npm run build` has put the same programs here. */
function built(tool: Tool | typeof LAUNCHER): string | null {
  const path = fileURLToPath(new URL(`../../build/assets/bin/${tool}`, import.meta.url));
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
