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
import { buildCache, withLock } from "../build/cache.ts";
import { bar } from "../build/report.ts";
import { run } from "../build/run.ts";
import { configureArguments, dav1dArguments, linkedPackages, recipeHash } from "./recipe.ts";
import { type AptSource, aptSources, installBuildPackages } from "./source.ts";

export type BuiltTools = { ffmpeg: string; ffprobe: string };

const cache = join(buildCache, "ffmpeg");
const week = 7 * 24 * 3600 * 1000;

/**
 * Our ffmpeg and ffprobe: from the cache, else compiled. A cached build is taken as it is for a week; then the
 * distribution is asked for a newer source, since that is how security fixes arrive.
 * Throws an Error that says why it cannot be built here.
 */
export async function staticFfmpeg(): Promise<BuiltTools> {
  const fresh = cachedBuild((age) => age < week);
  if (fresh) return fresh;
  return withLock(join(cache, "lock"), async () => {
    const madeMeanwhile = cachedBuild((age) => age < week);
    if (madeMeanwhile) return madeMeanwhile;
    const work = mkdtempSync(join(cache, "work-"));
    try {
      return await newestBuild(work);
    } catch (error) {
      const older = cachedBuild(() => true);
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

function cachedBuild(accept: (ageMs: number) => boolean): BuiltTools | null {
  if (!existsSync(cache)) return null;
  const builds = readdirSync(cache)
    .filter((name) => name.endsWith(`-${recipeHash}`))
    .map((name) => ({ folder: join(cache, name), checkedAt: statSync(join(cache, name)).mtimeMs }))
    .filter(({ checkedAt }) => accept(Date.now() - checkedAt))
    .sort((a, b) => b.checkedAt - a.checkedAt);
  return builds[0] ? toolsIn(builds[0].folder) : null;
}

const toolsIn = (folder: string): BuiltTools => ({ ffmpeg: join(folder, "ffmpeg"), ffprobe: join(folder, "ffprobe") });

async function newestBuild(work: string): Promise<BuiltTools> {
  const sourceOf = await aptSources(work);
  const [source, dav1d] = [await sourceOf("ffmpeg"), await sourceOf("dav1d")];
  const versions = [source.version, dav1d.version].map((version) => version.replaceAll(":", "_"));
  const target = join(cache, [...versions, recipeHash].join("-"));
  if (!existsSync(target)) {
    await installBuildPackages();
    console.log(`ffmpeg ${source.version}: compiling a static one (some minutes, once)`);
    const folder = await source.fetchInto(work);
    const libraries = await compileDav1d(dav1d, work);
    await compile(folder, source.version.replace(/^\d+:/, "").replace(/^[^-]*-/, ""), libraries);
    const linked = await linkedVersions(source.version, dav1d.version);
    install({ folder, dav1d: libraries, versions: linked, staging: join(work, "done"), target });
  }
  // The folder's time records when the distribution was last asked.
  utimesSync(target, new Date(), new Date());
  return toolsIn(target);
}

/** Compiles dav1d as a static archive and returns the prefix that it is installed in. */
async function compileDav1d(source: AptSource, work: string): Promise<string> {
  const folder = await source.fetchInto(work);
  const [build, prefix] = [join(work, "dav1d-build"), join(work, "dav1d-prefix")];
  await run("meson", ["setup", ...dav1dArguments(prefix), build, folder]);
  await run("ninja", ["-C", build, "install"]);
  copyFileSync(join(folder, "COPYING"), join(prefix, "COPYING.dav1d"));
  return prefix;
}

async function compile(folder: string, revision: string, libraries: string): Promise<void> {
  const env = { ...process.env, PKG_CONFIG_PATH: join(libraries, "lib/pkgconfig") };
  await run("./configure", configureArguments(revision), { cwd: folder, env });
  const plan = await run("make", ["-n", "ffmpeg", "ffprobe"], { cwd: folder });
  const steps = plan.split("\n").filter((line) => line.startsWith("printf ")).length;
  const progress = bar("ffmpeg: compiling", steps);
  const jobs = String(availableParallelism());
  await run("make", ["-j", jobs, "ffmpeg", "ffprobe"], { cwd: folder, onLine: progress.advance });
  progress.end();
}

type Installation = { folder: string; dav1d: string; versions: string; staging: string; target: string };

/** One rename puts all files in place: a build that is interrupted leaves nothing that looks like a result. */
function install({ folder, dav1d, versions, staging, target }: Installation): void {
  mkdirSync(staging);
  for (const name of ["ffmpeg", "ffprobe", "COPYING.GPLv2"]) copyFileSync(join(folder, name), join(staging, name));
  copyFileSync(join(dav1d, "COPYING.dav1d"), join(staging, "COPYING.dav1d"));
  writeFileSync(join(staging, "versions.txt"), versions);
  renameSync(staging, target);
}

/** The exact source packages that went in: with them and this recipe the same programs can be built again. */
async function linkedVersions(ffmpegVersion: string, dav1dVersion: string): Promise<string> {
  const rows = await run("dpkg-query", ["-W", "-f", `\${source:Package} \${source:Version}\n`, ...linkedPackages]);
  return [`ffmpeg ${ffmpegVersion}`, `dav1d ${dav1dVersion}`, ...rows.trim().split("\n"), ""].join("\n");
}
