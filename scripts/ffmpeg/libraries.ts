import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import type { Arch } from "../build/base.ts";
import { buildCache } from "../build/cache.ts";
import { run } from "../build/run.ts";
import { unpackPackages } from "../debian/packages.ts";
import {
  crossArguments,
  crossFile,
  dav1dArguments,
  HIDDEN_HEADER,
  libraryHash,
  linkedPackages,
  svtAv1Arguments,
  type Target,
  X265_10BIT_ARCHIVE,
  x264Arguments,
  x265Arguments,
} from "./recipe.ts";
import type { AptSource } from "./source.ts";

/** How a target's compiler is called, and the source packages of its libraries with their versions. */
export type Platform = {
  mesonArguments: string[];
  configureArguments: string[];
  env: NodeJS.ProcessEnv;
  /** Where compiled libraries are installed: `prefix` below `root`, which pkg-config prepends to every path. */
  root: string;
  prefix: string;
  linked: string[];
};

export async function platformFor(arch: Arch, { cross, withX264 }: Target, work: string): Promise<Platform> {
  const names = linkedPackages.filter((name) => !withX264 || name !== "libx264-dev");
  if (!cross) {
    const format = `\${source:Package} \${source:Version}\n`;
    const rows = await run("dpkg-query", ["-W", "-f", format, ...names]);
    const none = { mesonArguments: [], configureArguments: [], env: {} };
    return { ...none, root: "", prefix: join(work, "libraries"), linked: rows.trim().split("\n") };
  }
  const sysroot = join(work, "sysroot");
  const packages = await unpackPackages(names, arch, { work, target: sysroot });
  const file = join(work, "cross.ini");
  writeFileSync(file, crossFile(cross));
  const pkgConfig = join(sysroot, "usr/lib", cross.prefix, "pkgconfig");
  return {
    mesonArguments: ["--cross-file", file],
    configureArguments: crossArguments(cross, sysroot),
    root: sysroot,
    prefix: "/libraries",
    env: { PKG_CONFIG_LIBDIR: pkgConfig, PKG_CONFIG_SYSROOT_DIR: sysroot },
    linked: packages.map(({ source, sourceVersion }) => `${source} ${sourceVersion}`),
  };
}

/** The directory that compiled libraries are installed in. */
export const installedIn = ({ root, prefix }: Pick<Platform, "root" | "prefix">): string => join(root, prefix);

type Compile = (source: AptSource, target: Target, platform: Destination, work: string) => Promise<void>;
type Destination = Pick<Platform, "mesonArguments" | "root" | "prefix">;

/** Compiles dav1d as a static archive. */
const compileDav1d: Compile = async (source, _target, platform, work) => {
  const folder = await source.fetchInto(work);
  const build = join(work, "dav1d-build");
  await run("meson", ["setup", ...platform.mesonArguments, ...dav1dArguments(platform.prefix), build, folder]);
  await run("ninja", ["-C", build, "install"], { env: { ...process.env, DESTDIR: platform.root } });
  copyFileSync(join(folder, "COPYING"), join(installedIn(platform), "COPYING.dav1d"));
};

const compileX264: Compile = async (source, { cross }, { root, prefix }, work) => {
  const folder = await source.fetchInto(work);
  await run("./configure", x264Arguments(prefix, cross), { cwd: folder });
  await run("make", ["-j", String(availableParallelism())], { cwd: folder });
  await run("make", ["install-lib-static", `DESTDIR=${root}`], { cwd: folder });
};

const compileX265: Compile = async (source, target, platform, work) => {
  const folder = await source.fetchInto(work);
  for (const bits of [10, 8] as const) {
    const build = join(work, `x265-build-${bits}`);
    const args = x265Arguments(platform.prefix, target, bits);
    await run("cmake", ["-S", join(folder, "source"), "-B", build, ...args]);
    if (bits === 8) await run("ninja", ["-C", build, "install"], { env: { ...process.env, DESTDIR: platform.root } });
    else await run("ninja", ["-C", build]);
  }
  const libraries = join(installedIn(platform), "lib");
  copyFileSync(join(work, "x265-build-10/libx265.a"), join(libraries, `lib${X265_10BIT_ARCHIVE}.a`));
  const description = join(libraries, "pkgconfig/x265.pc");
  const stated = readFileSync(description, "utf8")
    .replaceAll(/ -lx265\b/g, ` -lx265 -l${X265_10BIT_ARCHIVE}`)
    // It names the shared library of the compiler, which a static program cannot link.
    .replaceAll(/ -lgcc_s\b/g, "");
  writeFileSync(description, stated);
};

const compileSvtAv1: Compile = async (source, target, platform, work) => {
  const folder = await source.fetchInto(work);
  const build = join(work, "svt-av1-build");
  writeFileSync(join(work, HIDDEN_HEADER.name), HIDDEN_HEADER.content);
  await run("cmake", ["-S", folder, "-B", build, ...svtAv1Arguments(platform.prefix, { ...target, headers: work })]);
  await run("ninja", ["-C", build, "install"], { env: { ...process.env, DESTDIR: platform.root } });
  const notices = ["LICENSE.md", "PATENTS.md"].map((name) => readFileSync(join(folder, name), "utf8"));
  writeFileSync(join(installedIn(platform), "COPYING.SVT-AV1"), notices.join("\n"));
};

const compiled: Record<string, Compile> = {
  dav1d: compileDav1d,
  x264: compileX264,
  x265: compileX265,
  "svt-av1": compileSvtAv1,
};

/** The source packages of the libraries that are compiled for a target, as static archives. */
export const compiledLibraries = ({ withX264 }: Target): string[] =>
  Object.keys(compiled).filter((name) => withX264 || name !== "x264");

/**
 * Puts one of them into the directory of the platform. What was compiled is kept, by the version of its source and its
 * recipe: both a linked build with AV1 and the complete one contain SVT-AV1, and a new ffmpeg needs no new libraries.
 */
export async function compileLibrary(
  name: string,
  source: AptSource,
  target: Target,
  { mesonArguments, root, prefix }: Destination,
  work: string,
): Promise<void> {
  const kept = join(
    buildCache,
    "libraries",
    `${name}-${source.version.replace(":", "_")}-${libraryHash(name, target)}`,
  );
  if (!existsSync(kept)) {
    const staging = { mesonArguments, root: mkdtempSync(join(work, `${name}-`)), prefix: "/libraries" };
    mkdirSync(installedIn(staging));
    await (compiled[name] as Compile)(source, target, staging, work);
    keep(installedIn(staging), kept);
  }
  const installed = installedIn({ root, prefix });
  cpSync(kept, installed, { recursive: true });
  const descriptions = join(installed, "lib/pkgconfig");
  for (const file of readdirSync(descriptions)) {
    const path = join(descriptions, file);
    writeFileSync(path, readFileSync(path, "utf8").replace(/^prefix=.*$/m, `prefix=${prefix}`));
  }
}

/** Another build may have compiled the same meanwhile: neither waits for one at a lower priority. */
function keep(folder: string, kept: string): void {
  mkdirSync(dirname(kept), { recursive: true });
  const staging = `${kept}.${process.pid}`;
  cpSync(folder, staging, { recursive: true });
  try {
    renameSync(staging, kept);
  } catch (error) {
    if (!existsSync(kept)) throw error;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}
