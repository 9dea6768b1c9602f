import { chmodSync, copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Arch, nodeProgram } from "./base.ts";
import { paths } from "./paths.ts";
import { isInstalled, run } from "./run.ts";
import { V8_SAFETY } from "./v8-flags.ts";

export type Contents = { arch: Arch; main: string; assets: Record<string, string>; result: string };

/**
 * Half of V8's default for each part of the young generation on a large machine: as many requests a second, pauses as
 * short, and 80 MB less memory. A quarter costs a tenth of the reads.
 */
const YOUNG_MEBIBYTES = 16;

/**
 * Growth of the heap, including external buffers, that triggers the next full collection. By default V8 lets a small heap
 * grow by a third: requests with bodies of 2 MB then cause three full collections per second, each of which delays other
 * requests by 30 ms on two cores.
 */
const HEAP_GROWTH_PERCENT = 100;

/** Puts `main` and `assets` into a copy of Node: a single executable application. */
export async function writeExecutable({ arch, main, assets, result }: Contents): Promise<void> {
  const base = await nodeProgram(arch);
  const native = arch === process.arch;
  const blob = join(paths.work, "blob");
  const config = join(paths.work, "sea.json");
  const settings = {
    main,
    output: blob,
    assets,
    disableExperimentalSEAWarning: true,
    // The launcher brings a warmer one for the bundle; the launcher itself is a few lines.
    useCodeCache: false,
    // `vodbox --node-options=…` would bypass our own argument parsing.
    execArgvExtension: "none",
    execArgv: [
      `--max-semi-space-size=${YOUNG_MEBIBYTES}`,
      `--heap-growing-percent=${HEAP_GROWTH_PERCENT}`,
      ...V8_SAFETY,
    ],
  };
  writeFileSync(config, JSON.stringify(settings));
  await run(native ? base : process.execPath, ["--experimental-sea-config", config]);
  const unfinished = `${result}.${process.pid}`;
  mkdirSync(dirname(result), { recursive: true });
  try {
    copyFileSync(base, unfinished);
    chmodSync(unfinished, 0o755);
    await strip(unfinished, arch);
    await inject(unfinished, blob);
    renameSync(unfinished, result);
  } finally {
    rmSync(unfinished, { force: true });
  }
}

/** As a program, not a function: postject warns about every stripped section, which `run` shows only on failure. */
async function inject(program: string, blob: string): Promise<void> {
  const postject = join(paths.modules, "postject/dist/cli.js");
  const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";
  await run(process.execPath, [postject, program, "NODE_SEA_BLOB", blob, "--sentinel-fuse", fuse]);
}

/** Node's symbols are a sixth of the file and only serve debuggers; without `strip` they stay. */
async function strip(program: string, arch: Arch): Promise<void> {
  const prefix = arch === process.arch ? "" : { x64: "x86_64-linux-gnu-", arm64: "aarch64-linux-gnu-" }[arch];
  const command = `${prefix}strip`;
  if (await isInstalled(command)) await run(command, ["--strip-unneeded", program]);
}
