import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Arch } from "../build/base.ts";
import { withLock } from "../build/cache.ts";
import { paths } from "../build/paths.ts";
import { bar, say } from "../build/report.ts";
import { run } from "../build/run.ts";
import {
  type BuiltTools,
  buildFolder,
  cache,
  cachedBuild,
  checked,
  install,
  isFresh,
  type Recipes,
  toolsIn,
} from "./cached.ts";
import type { Stage } from "./components.ts";
import { compiledLibraries, compileLibrary, installedIn, type Platform, platformFor } from "./libraries.ts";
import { isLinkable, linkedRecipe, newestLinked } from "./linked.ts";
import { addMultiCall, multiCallMake } from "./multi-call.ts";
import { usePackaged } from "./packaged.ts";
import { configureArguments, LIBRARY_NOTICES, type Target, targetFor } from "./recipe.ts";
import { type AptSource, aptSources, installBuildPackages, revisionOf } from "./source.ts";

/**
 * What a build must have: `linked` is what is there first, `linked-av1` also an encoder of AV1, `complete` everything.
 */
export type Wish = Stage;

/** The recipes of all stages that satisfy a wish. */
function recipesFor(arch: Arch, wish: Wish): Recipes {
  const complete = targetFor(arch).recipeHash;
  if (wish === "complete" || !isLinkable(arch)) return { complete };
  const recipes = { complete, "linked-av1": linkedRecipe("linked-av1") };
  return wish === "linked-av1" ? recipes : { ...recipes, linked: linkedRecipe("linked") };
}

/**
 * Our ffmpeg and ffprobe for `arch`: the best that is in the cache, else the first stage that satisfies `wish`. A cached build
 * is used for a week; then the distribution is checked for a newer source, which is how security fixes arrive. A package with one in
 * `modules` counts as a cached build. Throws an Error that says why it cannot be built here.
 */
export async function staticFfmpeg(
  arch: Arch,
  wish: Wish = "complete",
  modules: string = paths.modules,
): Promise<BuiltTools> {
  const recipes = recipesFor(arch, wish);
  usePackaged(arch, recipes, modules);
  const fresh = cachedBuild(recipes, isFresh);
  if (fresh) return fresh;
  if (wish !== "complete" && isLinkable(arch)) {
    try {
      return await built(recipes, `lock-${wish}`, (work) => newestLinked(wish, arch, recipes, work));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      say(`ffmpeg: it cannot be linked from the archives of the distribution, so all of it is compiled: ${reason}`);
    }
  }
  return built(recipes, "lock", (work) => newestBuild(arch, targetFor(arch), work));
}

/** About how long `staticFfmpeg` takes on two cores, in seconds: as measured, where the cache has no build. */
export function secondsToBuild(arch: Arch, wish: Wish): number {
  if (cachedBuild(recipesFor(arch, wish), isFresh)) return 1;
  return wish !== "complete" && isLinkable(arch) ? { linked: 30, "linked-av1": 150 }[wish] : 560;
}

/** Whether the complete programs for a processor are in the cache. */
export const hasBuild = (arch: Arch): boolean => cachedBuild(recipesFor(arch, "complete"), isFresh) !== null;

/** Runs `build` while no other one of the same stage does; its fault is only reported where an older build can be used. */
async function built(
  recipes: Recipes,
  lock: string,
  build: (work: string) => Promise<BuiltTools>,
): Promise<BuiltTools> {
  return withLock(join(cache, lock), async () => {
    const madeMeanwhile = cachedBuild(recipes, isFresh);
    if (madeMeanwhile) return madeMeanwhile;
    mkdirSync(cache, { recursive: true });
    const work = mkdtempSync(join(cache, "work-"));
    try {
      return await build(work);
    } catch (error) {
      const older = cachedBuild(recipes, () => true);
      if (!older) throw error;
      say(`ffmpeg: keeping the cached build (${error instanceof Error ? error.message.split("\n")[0] : error})`);
      return older;
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
}

async function newestBuild(arch: Arch, target: Target, work: string): Promise<BuiltTools> {
  const sourceOf = await aptSources(work);
  const source = await sourceOf("ffmpeg");
  const libraries = new Map<string, AptSource>();
  for (const name of compiledLibraries(target)) libraries.set(name, await sourceOf(name));
  const versions = [source, ...libraries.values()].map(({ version }) => version);
  const result = buildFolder(versions, target.recipeHash);
  if (!existsSync(result)) {
    await installBuildPackages(target.packages);
    say(`ffmpeg ${source.version} for ${arch}: compiling all of it (about ten minutes, once)`);
    const platform = await platformFor(arch, target, work);
    for (const [name, library] of libraries) await compileLibrary(name, library, target, platform, work);
    const folder = await source.fetchInto(work);
    const configuration = configureArguments(revisionOf(source.version));
    await compile({ folder, platform, cross: target.cross, configuration });
    const compiled = [...libraries].map(([name, { version }]) => `${name} ${version}`);
    install({
      program: join(folder, "vodbox"),
      notices: [
        join(folder, "COPYING.GPLv2"),
        ...Object.keys(LIBRARY_NOTICES)
          .map((name) => join(installedIn(platform), name))
          .filter(existsSync),
      ],
      versions: [`ffmpeg ${source.version}`, ...compiled, ...platform.linked],
      configuration,
      staging: join(work, "done"),
      target: result,
    });
  }
  return checked(toolsIn(result, "complete"));
}

type Compilation = { folder: string; platform: Platform; cross: Target["cross"]; configuration: string[] };

async function compile({ folder, platform, cross, configuration }: Compilation): Promise<void> {
  const env = { ...process.env, ...platform.env, PKG_CONFIG_PATH: join(installedIn(platform), "lib/pkgconfig") };
  await run("./configure", [...configuration, ...platform.configureArguments], { cwd: folder, env });
  addMultiCall(folder);
  const make = [...multiCallMake(cross ? `${cross.prefix}-` : ""), "vodbox"];
  const plan = await run("make", ["-n", ...make], { cwd: folder });
  const steps = plan.split("\n").filter((line) => line.startsWith("printf ")).length;
  const progress = bar("ffmpeg: compiling", steps);
  await run("make", ["-j", String(availableParallelism()), ...make], { cwd: folder, onLine: progress.advance });
  progress.end();
}
