import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { buildCache } from "../build/cache.ts";
import { STAGES, type Stage } from "./components.ts";

export type BuiltTools = { ffmpeg: string; ffprobe: string; stage: Stage };

/** Builds of this machine: a directory for each version and recipe. */
export const cache = join(buildCache, "ffmpeg");

const WEEK_MS = 7 * 24 * 3600 * 1000;

/** A build in the cache: the name of its directory, and the time since the last check for a newer source. */
type Candidate = { name: string; ageMs: number };

export const isFresh = ({ ageMs }: Candidate): boolean => ageMs < WEEK_MS;

/** Whether a build is of a version of ffmpeg's source package. */
export const isOfVersion =
  (version: string) =>
  ({ name }: Candidate): boolean =>
    name.startsWith(`${inName(version)}-`);

const inName = (version: string) => version.replaceAll(":", "_");

/** The recipe of each stage that is acceptable, which the names of its builds end with. */
export type Recipes = Partial<Record<Stage, string>>;

/** The newest build of the best stage, among those in the cache that `accept` accepts; null without one. */
export function cachedBuild(recipes: Recipes, accept: (build: Candidate) => boolean): BuiltTools | null {
  if (!existsSync(cache)) return null;
  const names = readdirSync(cache);
  for (const stage of STAGES) {
    const recipe = recipes[stage];
    const [newest] = names
      .filter((name) => recipe && name.endsWith(`-${recipe}`))
      .map((name) => ({ name, ageMs: Date.now() - statSync(join(cache, name)).mtimeMs }))
      .filter(accept)
      .sort((a, b) => a.ageMs - b.ageMs);
    if (newest) return toolsIn(join(cache, newest.name), stage);
  }
  return null;
}

export const toolsIn = (folder: string, stage: Stage): BuiltTools => ({
  ffmpeg: join(folder, "ffmpeg"),
  ffprobe: join(folder, "ffprobe"),
  stage,
});

/** Records that the distribution has no newer source than that of a build, and returns it. */
export function checked(tools: BuiltTools): BuiltTools {
  utimesSync(dirname(tools.ffmpeg), new Date(), new Date());
  return tools;
}

/** The directory of a build of source packages with these versions. */
export const buildFolder = (versions: string[], recipe: string): string =>
  join(cache, [...versions.map(inName), recipe].join("-"));

/** Names of the files next to the programs. */
export const VERSIONS = "versions.txt";
export const CONFIGURATION = "configuration.txt";

type Installation = {
  program: string;
  /** Notices and licences to copy. */
  notices: string[];
  /** The exact source packages, one a line: with them and the recipe the same programs can be built again. */
  versions: string[];
  /** Arguments of `./configure`. */
  configuration: string[];
  staging: string;
  target: string;
};

/** One rename puts all files in place: an interrupted build leaves nothing that looks like a result. */
export function install({ program, notices, versions, configuration, staging, target }: Installation): void {
  mkdirSync(staging);
  copyFileSync(program, join(staging, "ffmpeg"));
  // It runs what it is called as.
  linkSync(join(staging, "ffmpeg"), join(staging, "ffprobe"));
  for (const path of notices) copyFileSync(path, join(staging, basename(path)));
  writeFileSync(join(staging, VERSIONS), [...versions, ""].join("\n"));
  writeFileSync(join(staging, CONFIGURATION), configuration.join(" "));
  renameSync(staging, target);
}
