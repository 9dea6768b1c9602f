import { execFileSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import {
  copyFileSync,
  constants as fsConstants,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { extname, join } from "node:path";
import { buildCache } from "#scripts/build/cache.ts";

/** In the user's cache: what ffmpeg makes of nothing but its arguments is the same in each run of the tests. */
const folder = join(buildCache, "test-media");
const MAX_BYTES = 32 * 2 ** 20;
const UNUSED_MS = 30 * 86_400_000;
const EXTENSIONS = new Set(
  ".mp4 .mov .mkv .webm .ts .flv .avi .wav .m4a .mp3 .mpg .mxf .wmv .ogg .gif .png".split(" "),
);

let version: string | undefined;

/**
 * Where the cache has the result of these arguments of ffmpeg; null when they also read files, or write more than one. Only
 * generated inputs (lavfi) read nothing.
 */
export function recipeOf(args: string[]): string | null {
  const output = args.at(-1) ?? "";
  const inputs = args.flatMap((arg, index) => (arg === "-i" ? [args.slice(index - 2, index).join(" ")] : []));
  const reads = inputs.length === 0 || inputs.some((format) => format !== "-f lavfi");
  const writesMore = args
    .slice(0, -1)
    .some((arg) => arg.includes("/tmp/") || arg.startsWith("/") || arg.includes("movie="));
  if (reads || writesMore || !EXTENSIONS.has(extname(output)) || output.includes("%")) return null;
  version ??= execFileSync("ffmpeg", ["-version"], { encoding: "utf8" });
  const recipe = JSON.stringify([version, args.slice(0, -1), extname(output)]);
  return join(folder, createHash("sha256").update(recipe).digest("hex"));
}

/** Copies the cached result to `output`; false when there is none. */
export function copyCached(cached: string, output: string): boolean {
  try {
    copyFileSync(cached, output, fsConstants.COPYFILE_FICLONE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  // When it was used last, for deleteUnused.
  const now = new Date();
  utimesSync(cached, now, now);
  return true;
}

/** Keeps a result. Test files may write it at the same time: each writes its own, and one of them stays. */
export function keep(cached: string, output: string): void {
  if (statSync(output).size > MAX_BYTES) return;
  mkdirSync(folder, { recursive: true });
  const own = `${cached}-${randomUUID()}`;
  copyFileSync(output, own, fsConstants.COPYFILE_FICLONE);
  renameSync(own, cached);
}

/** Deletes what was not used for a month. */
export function deleteUnused(): void {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const info = statSync(path, { throwIfNoEntry: false });
    if (info && Date.now() - info.mtimeMs > UNUSED_MS) rmSync(path, { force: true });
  }
}
