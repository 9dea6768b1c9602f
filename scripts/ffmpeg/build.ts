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
import { compiledLibraries, compileLibrary, installedIn, type Platform, platformFor } from "./libraries.ts";
import { configureArguments, LIBRARY_NOTICES, type Target, targetFor } from "./recipe.ts";
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
  const source = await sourceOf("ffmpeg");
  const libraries = new Map<string, AptSource>();
  for (const name of compiledLibraries(target)) libraries.set(name, await sourceOf(name));
  const all = [source, ...libraries.values()];
  const versions = all.map(({ version }) => version.replaceAll(":", "_"));
  const result = join(cache, [...versions, target.recipeHash].join("-"));
  if (!existsSync(result)) {
    await installBuildPackages(target.packages);
    console.log(`ffmpeg ${source.version} for ${arch}: compiling a static one (some minutes, once)`);
    const platform = await platformFor(arch, target, work);
    const folder = await source.fetchInto(work);
    for (const [name, library] of libraries) await compileLibrary(name, library, target, platform, work);
    await compile({
      folder,
      revision: source.version.replace(/^\d+:/, "").replace(/^[^-]*-/, ""),
      platform,
    });
    const compiled = [...libraries].map(([name, { version }]) => `${name} ${version}`);
    const linked = [`ffmpeg ${source.version}`, ...compiled, ...platform.linked, ""].join("\n");
    const notices = installedIn(platform);
    install({ folder, notices, versions: linked, staging: join(work, "done"), target: result });
  }
  // The directory's modification time records when the distribution was last checked.
  utimesSync(result, new Date(), new Date());
  return toolsIn(result);
}

type Compilation = { folder: string; revision: string; platform: Platform };

async function compile({ folder, revision, platform }: Compilation): Promise<void> {
  const env = { ...process.env, ...platform.env, PKG_CONFIG_PATH: join(installedIn(platform), "lib/pkgconfig") };
  await run("./configure", [...configureArguments(revision), ...platform.configureArguments], { cwd: folder, env });
  const plan = await run("make", ["-n", "ffmpeg", "ffprobe"], { cwd: folder });
  const steps = plan.split("\n").filter((line) => line.startsWith("printf ")).length;
  const progress = bar("ffmpeg: compiling", steps);
  const jobs = String(availableParallelism());
  await run("make", ["-j", jobs, "ffmpeg", "ffprobe"], { cwd: folder, onLine: progress.advance });
  progress.end();
}

type Installation = { folder: string; notices: string; versions: string; staging: string; target: string };

/** One rename puts all files in place: an interrupted build leaves nothing that looks like a result. */
function install({ folder, notices, versions, staging, target }: Installation): void {
  mkdirSync(staging);
  for (const name of ["ffmpeg", "ffprobe", "COPYING.GPLv2"]) copyFileSync(join(folder, name), join(staging, name));
  for (const name of Object.keys(LIBRARY_NOTICES)) copyFileSync(join(notices, name), join(staging, name));
  // The exact source packages: with them and this recipe the same programs can be built again.
  writeFileSync(join(staging, "versions.txt"), versions);
  renameSync(staging, target);
}
