import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Arch } from "../build/base.ts";
import { run } from "../build/run.ts";
import { unpackPackages } from "../debian/packages.ts";
import {
  crossArguments,
  crossFile,
  dav1dArguments,
  HIDDEN_HEADER,
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
  const packages = await unpackPackages(names, arch, work, sysroot);
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
export const installedIn = ({ root, prefix }: Platform): string => join(root, prefix);

type Compile = (source: AptSource, target: Target, platform: Platform, work: string) => Promise<void>;

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

/** Compiles one of them into the directory of the platform. */
export const compileLibrary = (name: string, ...rest: Parameters<Compile>): Promise<void> =>
  (compiled[name] as Compile)(...rest);
