import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { Arch } from "./base.ts";
import { buildCache } from "./cache.ts";
import { paths } from "./paths.ts";
import { say } from "./report.ts";
import { isInstalled, run } from "./run.ts";

const folder = join(paths.root, "src/lib/sandbox");
const sources = ["launcher.c", "filter.c", "processes.c", "cgroups.c", "spawner.c"].map((name) => join(folder, name));
const headers = ["launcher.h", "spawner.h"].map((name) => join(folder, name));
const flags = [
  ...["-O2", "-Wall", "-Wextra", "-Werror", "-static-pie", "-fPIE", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2"],
  ...["-Wl,-z,relro,-z,now,-z,noexecstack", "-s"],
];
const compilers: Record<Arch, string> = { x64: "x86_64-linux-gnu-gcc", arm64: "aarch64-linux-gnu-gcc" };

/**
 * Compiles the sandbox launcher; `{}` with a warning when there is no compiler for `arch`: ffmpeg then runs with what
 * the system offers. The result stays in the build cache, named by sources, flags and compiler.
 */
export async function sandboxLauncher(arch: Arch): Promise<Record<string, string>> {
  const compiler = arch === process.arch && (await isInstalled("gcc")) ? "gcc" : compilers[arch];
  if (!(await isInstalled(compiler))) {
    say(`Warning: there is no ${compiler}; the executable confines ffmpeg only by the system's own programs.`);
    return {};
  }
  const version = await run(compiler, ["--version"]);
  const name = createHash("sha256")
    .update(JSON.stringify([[...sources, ...headers].map((path) => readFileSync(path, "utf8")), flags, version]))
    .digest("hex");
  const path = join(buildCache, "sandbox", name.slice(0, 16));
  if (!existsSync(path)) {
    mkdirSync(join(buildCache, "sandbox"), { recursive: true });
    const unfinished = `${path}.${process.pid}`;
    await run(compiler, [...flags, "-o", unfinished, ...sources]);
    renameSync(unfinished, path);
  }
  return { "vodbox-sandbox": path };
}
