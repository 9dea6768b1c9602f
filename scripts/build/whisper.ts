import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Arch, whisperLibrary } from "./base.ts";
import { buildCache } from "./cache.ts";
import { paths } from "./paths.ts";
import { say } from "./report.ts";
import { isInstalled, run } from "./run.ts";

type Helper = { source: string; flags: string[]; versions?: string };
const COMMON = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-nostdlib", "-s"];
/** Libraries that are loaded before whisper.cpp's for x64: each replaces what it exports. */
const HELPERS: Record<string, Helper> = {
  "libgomp.so.1": {
    source: "openmp.c",
    flags: ["-Wl,-soname,libgomp.so.1"],
    // With this version the library asks for the two functions.
    versions: "OMP_1.0 { global: omp_get_thread_num; omp_get_num_threads; local: *; };\n",
  },
  "whisper-avx2.so": { source: "kernels.c", flags: ["-mavx2", "-mfma", "-mf16c"] },
};

/**
 * whisper.cpp's library for `arch` and, for x64, faster loops and a replacement of the system library that it names; without a
 * compiler it is slow, and only systems with that library can use it. The results stay in the build cache.
 */
export async function whisperLibraries(arch: Arch): Promise<Record<string, string>> {
  return { "whisper.node": await whisperLibrary(arch), ...(await whisperHelpers(arch)) };
}

/** The same without whisper.cpp's library, which tests have in node_modules. */
export async function whisperHelpers(arch: Arch): Promise<Record<string, string>> {
  // The library for arm64 names none, and has loops for all of its processors.
  if (arch !== "x64") return {};
  const compiler = arch === process.arch && (await isInstalled("gcc")) ? "gcc" : "x86_64-linux-gnu-gcc";
  if (!(await isInstalled(compiler))) {
    say(`Warning: there is no ${compiler}; VODBOX_TRANSCRIBE=whisper is slow, and needs the system's libgomp.so.1.`);
    return {};
  }
  const version = await run(compiler, ["--version"]);
  const compiled: Record<string, string> = {};
  for (const [name, helper] of Object.entries(HELPERS)) compiled[name] = await compile(compiler, version, helper);
  return compiled;
}

/** The path of the compiled library, named by source, flags and compiler. */
async function compile(compiler: string, version: string, { source, flags, versions }: Helper): Promise<string> {
  const file = join(paths.root, "src/platform/outbound/transcribe/whisper", source);
  const all = [...COMMON, ...flags];
  const name = createHash("sha256")
    .update(JSON.stringify([readFileSync(file, "utf8"), versions, all, version]))
    .digest("hex");
  const folder = join(buildCache, "whisper");
  const path = join(folder, name.slice(0, 16));
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  const script = `${unfinished}.map`;
  writeFileSync(script, versions ?? "");
  await run(compiler, [...all, ...(versions ? [`-Wl,--version-script=${script}`] : []), "-o", unfinished, file]);
  rmSync(script);
  renameSync(unfinished, path);
  return path;
}
