import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Arch, whisperLibrary } from "./base.ts";
import { buildCache } from "./cache.ts";
import { paths } from "./paths.ts";
import { say } from "./report.ts";
import { isInstalled, run } from "./run.ts";

const source = join(paths.root, "src/platform/outbound/transcribe/whisper/openmp.c");
const flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-nostdlib", "-s", "-Wl,-soname,libgomp.so.1"];
/** The version with which the library asks for the two functions. */
const VERSIONS = "OMP_1.0 { global: omp_get_thread_num; omp_get_num_threads; local: *; };\n";

/**
 * whisper.cpp's library for `arch` and, for x64, a replacement of the system library that it names; without a compiler only
 * systems with that library can use it. The result stays in the build cache.
 */
export async function whisperLibraries(arch: Arch): Promise<Record<string, string>> {
  const library = { "whisper.node": await whisperLibrary(arch) };
  // The library for arm64 names none.
  if (arch !== "x64") return library;
  const compiler = arch === process.arch && (await isInstalled("gcc")) ? "gcc" : "x86_64-linux-gnu-gcc";
  if (!(await isInstalled(compiler))) {
    say(`Warning: there is no ${compiler}; VODBOX_TRANSCRIBE=whisper needs the system's libgomp.so.1.`);
    return library;
  }
  const version = await run(compiler, ["--version"]);
  const name = createHash("sha256")
    .update(JSON.stringify([readFileSync(source, "utf8"), VERSIONS, flags, version]))
    .digest("hex");
  const path = join(buildCache, "openmp", name.slice(0, 16));
  if (!existsSync(path)) {
    mkdirSync(join(buildCache, "openmp"), { recursive: true });
    const unfinished = `${path}.${process.pid}`;
    const script = `${unfinished}.map`;
    writeFileSync(script, VERSIONS);
    await run(compiler, [...flags, `-Wl,--version-script=${script}`, "-o", unfinished, source]);
    rmSync(script);
    renameSync(unfinished, path);
  }
  return { ...library, "libgomp.so.1": path };
}
