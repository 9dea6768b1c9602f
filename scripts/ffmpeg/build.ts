import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Arch } from "../build/base.ts";
import { buildCache, withLock } from "../build/cache.ts";
import { bar } from "../build/report.ts";
import { run } from "../build/run.ts";
import { unpackPackages } from "../debian/packages.ts";
import {
  configureArguments,
  crossArguments,
  crossFile,
  dav1dArguments,
  linkedPackages,
  type Target,
  targetFor,
  x264Arguments,
} from "./recipe.ts";
import { type AptSource, aptSources, installBuildPackages } from "./source.ts";

export type BuiltTools = { ffmpeg: string; ffprobe: string };

const cache = join(buildCache, "ffmpeg");
const week = 7 * 24 * 3600 * 1000;

/**
 * Our ffmpeg and ffprobe for `arch`: from the cache, else compiled. A cached build is used for a week; then the distribution is
 * checked for a newer source, which is how security fixes arrive. Throws an Error that says why it cannot be built
 * here.
 */
export async function staticFfmpeg(arch: Arch): Promise<BuiltTools> {
  const target = targetFor(arch);
  const fresh = cachedBuild(target, (age) => age < week);
  if (fresh) return fresh;
  return withLock(join(cache, "lock"), async () => {
    const madeMeanwhile = cachedBuild(target, (age) => age < week);
    if (madeMeanwhile) return madeMeanwhile;
    const work = mkdtempSync(join(cache, "work-"));
    try {
      return await newestBuild(arch, target, work);
    } catch (error) {
      const older = cachedBuild(target, () => true);
      if (!older) throw error;
      console.log(
        `ffmpeg: keeping the cached build (${error instanceof Error ? error.message.split("\n")[0] : error})`,
      );
      return older;
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
}

function cachedBuild({ recipeHash }: Target, accept: (ageMs: number) => boolean): BuiltTools | null {
  if (!existsSync(cache)) return null;
  const builds = readdirSync(cache)
    .filter((name) => name.endsWith(`-${recipeHash}`))
    .map((name) => ({ folder: join(cache, name), checkedAt: statSync(join(cache, name)).mtimeMs }))
    .filter(({ checkedAt }) => accept(Date.now() - checkedAt))
    .sort((a, b) => b.checkedAt - a.checkedAt);
  return builds[0] ? toolsIn(builds[0].folder) : null;
}

const toolsIn = (folder: string): BuiltTools => ({ ffmpeg: join(folder, "ffmpeg"), ffprobe: join(folder, "ffprobe") });

async function newestBuild(arch: Arch, target: Target, work: string): Promise<BuiltTools> {
  const sourceOf = await aptSources(work);
  const [source, dav1d] = [await sourceOf("ffmpeg"), await sourceOf("dav1d")];
  const versions = [source.version, dav1d.version].map((version) => version.replaceAll(":", "_"));
  const result = join(cache, [...versions, target.recipeHash].join("-"));
  if (!existsSync(result)) {
    await installBuildPackages(target.packages);
    console.log(`ffmpeg ${source.version} for ${arch}: compiling a static one (some minutes, once)`);
    const platform = await platformFor(arch, target, work);
    const folder = await source.fetchInto(work);
    const libraries = await compileDav1d(dav1d, platform, work);
    const x264 = target.withX264 ? await sourceOf("x264") : null;
    if (x264) await compileX264(x264, target, platform, work);
    await compile({
      folder,
      revision: source.version.replace(/^\d+:/, "").replace(/^[^-]*-/, ""),
      libraries,
      platform,
    });
    const compiled = [`ffmpeg ${source.version}`, `dav1d ${dav1d.version}`, ...(x264 ? [`x264 ${x264.version}`] : [])];
    const linked = [...compiled, ...platform.linked, ""].join("\n");
    install({ folder, dav1d: libraries, versions: linked, staging: join(work, "done"), target: result });
  }
  // The directory's modification time records when the distribution was last checked.
  utimesSync(result, new Date(), new Date());
  return toolsIn(result);
}

/** How a target's compiler is called, and the source packages of its libraries with their versions. */
type Platform = {
  mesonArguments: string[];
  configureArguments: string[];
  env: NodeJS.ProcessEnv;
  /** Where compiled libraries are installed: `prefix` below `root`, which pkg-config prepends to every path. */
  root: string;
  prefix: string;
  linked: string[];
};

async function platformFor(arch: Arch, { cross, withX264 }: Target, work: string): Promise<Platform> {
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

/** Compiles dav1d as a static archive and returns the directory that it is installed in. */
async function compileDav1d(source: AptSource, platform: Platform, work: string): Promise<string> {
  const folder = await source.fetchInto(work);
  const build = join(work, "dav1d-build");
  await run("meson", ["setup", ...platform.mesonArguments, ...dav1dArguments(platform.prefix), build, folder]);
  await run("ninja", ["-C", build, "install"], { env: { ...process.env, DESTDIR: platform.root } });
  const installed = join(platform.root, platform.prefix);
  copyFileSync(join(folder, "COPYING"), join(installed, "COPYING.dav1d"));
  return installed;
}

/** Compiles x264 as a static archive, next to dav1d. */
async function compileX264(source: AptSource, { cross }: Target, { root, prefix }: Platform, work: string) {
  const folder = await source.fetchInto(work);
  await run("./configure", x264Arguments(prefix, cross), { cwd: folder });
  await run("make", ["-j", String(availableParallelism())], { cwd: folder });
  await run("make", ["install-lib-static", `DESTDIR=${root}`], { cwd: folder });
}

type Compilation = { folder: string; revision: string; libraries: string; platform: Platform };

async function compile({ folder, revision, libraries, platform }: Compilation): Promise<void> {
  const env = { ...process.env, ...platform.env, PKG_CONFIG_PATH: join(libraries, "lib/pkgconfig") };
  await run("./configure", [...configureArguments(revision), ...platform.configureArguments], { cwd: folder, env });
  const plan = await run("make", ["-n", "ffmpeg", "ffprobe"], { cwd: folder });
  const steps = plan.split("\n").filter((line) => line.startsWith("printf ")).length;
  const progress = bar("ffmpeg: compiling", steps);
  const jobs = String(availableParallelism());
  await run("make", ["-j", jobs, "ffmpeg", "ffprobe"], { cwd: folder, onLine: progress.advance });
  progress.end();
}

type Installation = { folder: string; dav1d: string; versions: string; staging: string; target: string };

/** One rename puts all files in place: an interrupted build leaves nothing that looks like a result. */
function install({ folder, dav1d, versions, staging, target }: Installation): void {
  mkdirSync(staging);
  for (const name of ["ffmpeg", "ffprobe", "COPYING.GPLv2"]) copyFileSync(join(folder, name), join(staging, name));
  copyFileSync(join(dav1d, "COPYING.dav1d"), join(staging, "COPYING.dav1d"));
  // The exact source packages: with them and this recipe the same programs can be built again.
  writeFileSync(join(staging, "versions.txt"), versions);
  renameSync(staging, target);
}
