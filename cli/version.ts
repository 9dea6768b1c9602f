import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { cacheDir, embedded, resolveBinaries, sandboxLauncher } from "#lib/executable";
import { line, printJson } from "./print.ts";

type BuildInfo = { version: string; libsql: string };

/**
 * Prints the versions of all components, as each reports it: this also shows that the native library loads and that
 * ffmpeg starts.
 */
export async function printVersion({ json }: { json: boolean }): Promise<void> {
  const build = JSON.parse(embedded("build-info.json").toString()) as BuildInfo;
  const versions = {
    vodbox: build.version,
    node: process.version.slice(1),
    libsql: await sqliteVersion().then((sqlite) => `${build.libsql} (SQLite ${sqlite})`, unusable),
    ffmpeg: await ffmpegVersion().catch(unusable),
  };
  if (json) return printJson(versions);
  for (const [name, version] of Object.entries(versions)) line(`${name.padEnd(6)}  ${version}`);
}

const unusable = (error: unknown) => `not usable: ${error instanceof Error ? error.message : error}`;

async function sqliteVersion(): Promise<string> {
  // Imported here: a library that cannot be loaded is then a line of the output, not a crash before it.
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
  const binaries = await resolveBinaries({ ffmpeg, ffprobe, cacheDir: cacheDir() });
  // Extracted in this process, for a server that runs it to avoid blocking (see media/binaries.ts).
  sandboxLauncher();
  const { stdout } = await promisify(execFile)(binaries.ffmpeg, ["-version"]);
  return `${/^ffmpeg version (\S+)/.exec(stdout)?.[1] ?? "unknown"} (${binaries.origin}: ${binaries.ffmpeg})`;
}
