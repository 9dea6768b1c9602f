import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { cacheDir } from "../src/lib/cache-dir.ts";
import { embedded } from "../src/lib/embedded.ts";
import { resolveBinaries, sandboxLauncher } from "../src/media/binaries.ts";

type BuildInfo = { version: string; libsql: string };

/**
 * Prints the version of everything that runs here, as each part says it itself: whoever reports a fault with this
 * has also shown that the library loads and that ffmpeg starts.
 */
export async function printVersion(): Promise<void> {
  const build = JSON.parse(embedded("build-info.json").toString()) as BuildInfo;
  const lines = [
    `vodbox  ${build.version}`,
    `node    ${process.version.slice(1)}`,
    `libsql  ${await sqliteVersion().then((sqlite) => `${build.libsql} (SQLite ${sqlite})`, unusable)}`,
    `ffmpeg  ${await ffmpegVersion().catch(unusable)}`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

const unusable = (error: unknown) => `not usable: ${error instanceof Error ? error.message : error}`;

async function sqliteVersion(): Promise<string> {
  // Imported here: where the library cannot be loaded, that is a line of the answer and no crash before it.
  const { default: Database } = await import("libsql");
  const database = new Database(":memory:");
  try {
    return (database.prepare("SELECT sqlite_version() AS version").get() as { version: string }).version;
  } finally {
    database.close();
  }
}

async function ffmpegVersion(): Promise<string> {
  const { VODBOX_FFMPEG: ffmpeg, VODBOX_FFPROBE: ffprobe } = process.env;
  const found = await resolveBinaries({ ffmpeg, ffprobe, cacheDir: cacheDir() });
  // Unpacked here too, for a server that has another process do it (binariesAside).
  sandboxLauncher();
  const { stdout } = await promisify(execFile)(found.ffmpeg, ["-version"]);
  return `${/^ffmpeg version (\S+)/.exec(stdout)?.[1] ?? "unknown"} (${found.origin}: ${found.ffmpeg})`;
}
