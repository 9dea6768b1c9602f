import { copyFileSync } from "node:fs";
import { join } from "node:path";
import type { Arch } from "../build/base.ts";
import { say } from "../build/report.ts";
import { run } from "../build/run.ts";
import { archiveOptions, type Unpacked, unpackPackages } from "../debian/packages.ts";
import {
  type BuiltTools,
  buildFolder,
  cachedBuild,
  checked,
  install,
  isOfVersion,
  type Recipes,
  toolsIn,
} from "./cached.ts";
import { type LinkedStage, words } from "./components.ts";
import { compileLibrary } from "./libraries.ts";
import { compileAndLink, LINK_RECIPE } from "./link.ts";
import { configureArguments, hashOf, libraryHash, targetFor } from "./recipe.ts";
import { type AptSource, installBuildPackages, revisionOf, sourcesWith } from "./source.ts";

/** Packages that must be installed; those below are only unpacked, which needs no root. */
const COMPILER = words("gcc g++ make pkg-config dpkg-dev xz-utils");
const TOOLS = words("nasm");
/** The static archives of ffmpeg's own libraries. */
const OWN = words(`libavcodec-dev libavformat-dev libavfilter-dev libavdevice-dev libavutil-dev libswscale-dev
  libswresample-dev libpostproc-dev`);
const EXTERNAL = words(`libx264-dev libx265-dev libvpx-dev libopus-dev libwebp-dev libzimg-dev libaom-dev
  zlib1g-dev`);

/** The versions of which the list of compiled files is known. */
const KNOWN_VERSION = /^\d+:5\.1\./;

/** Whether there is a linked build for a processor: the list of files was tested on x64 only. */
export const isLinkable = (arch: Arch): boolean => arch === "x64" && process.arch === arch;

/** The source packages of the libraries that are compiled for a stage, with their names and notices. */
const AV1_LIBRARIES = { dav1d: "COPYING.dav1d", "svt-av1": "COPYING.SVT-AV1" };
const compiledFor = (stage: LinkedStage): string[] => (stage === "linked-av1" ? Object.keys(AV1_LIBRARIES) : []);

/** Names the recipe of a stage. */
export const linkedRecipe = (stage: LinkedStage): string =>
  hashOf([
    ...[configureArguments("", stage), LINK_RECIPE, COMPILER, TOOLS, OWN, EXTERNAL],
    compiledFor(stage).map((name) => libraryHash(name, targetFor("x64"))),
  ]);

/**
 * ffmpeg and ffprobe, linked from the distribution's static archives of ffmpeg's libraries. Only the files that depend on
 * the selected components are compiled. A build of the same source in `recipes` is used instead, whatever its stage.
 * Throws an Error that says what is missing, such as archives of the newest source.
 */
export async function newestLinked(
  stage: LinkedStage,
  arch: Arch,
  recipes: Recipes,
  work: string,
): Promise<BuiltTools> {
  const options = await archiveOptions(arch, work, ["deb", "deb-src"]);
  const sourceOf = sourcesWith(options);
  const source = await sourceOf("ffmpeg");
  const current = cachedBuild(recipes, isOfVersion(source.version));
  if (current) return checked(current);
  if (!KNOWN_VERSION.test(source.version)) throw new Error(`the files to compile of ${source.version} are not known`);
  await installBuildPackages(COMPILER);
  const libraries: Library[] = [];
  for (const name of compiledFor(stage)) libraries.push({ name, source: await sourceOf(name) });
  const cost = stage === "linked-av1" ? "some minutes" : "under a minute";
  say(`ffmpeg ${source.version}: linking it from the distribution's archives (${cost}, once)`);
  const linkable = await fetchLinkable(source, stage, { arch, work, options });
  const { source: folder, sysroot, configuration, packages } = linkable;
  if (libraries.length > 0) await addLibraries(libraries, arch, sysroot, work);
  await compileAndLink(linkable);
  const notices = [join(folder, "COPYING.GPLv2")];
  if (stage === "linked-av1") {
    for (const notice of Object.values(AV1_LIBRARIES)) notices.push(join(sysroot, "libraries", notice));
  } else {
    copyFileSync(join(sysroot, "usr/share/doc/libaom-dev/copyright"), join(work, "COPYING.aom"));
    notices.push(join(work, "COPYING.aom"));
  }
  const target = buildFolder(
    [source, ...libraries.map((library) => library.source)].map(({ version }) => version),
    linkedRecipe(stage),
  );
  const versions = [`ffmpeg ${source.version}`, ...libraries.map((one) => `${one.name} ${one.source.version}`)];
  const isLinked = ({ source }: Unpacked) => stage === "linked" || source !== "aom";
  versions.push(...(await linkedVersions(packages.filter(isLinked))));
  install({ program: join(folder, "vodbox"), notices, versions, configuration, staging: join(work, "done"), target });
  return toolsIn(target, stage);
}

type Fetching = { arch: Arch; work: string; options: string[] };

/** Downloads and unpacks the source and the packages. */
export async function fetchLinkable(source: AptSource, stage: LinkedStage, { arch, work, options }: Fetching) {
  const sysroot = join(work, "sysroot");
  const unpack = unpackPackages([...TOOLS, ...OWN, ...EXTERNAL], arch, { work, target: sysroot, options });
  const [packages, folder] = await Promise.all([unpack, source.fetchInto(work)]);
  requireSameSource(packages, source);
  const configuration = configureArguments(revisionOf(source.version), stage);
  return { source: folder, version: source.version, sysroot, configuration, packages, stage };
}

/** An archive of another source would not fit the headers that the other files are compiled with. */
function requireSameSource(packages: Unpacked[], { version }: AptSource): void {
  const other = packages.find(({ source, sourceVersion }) => source === "ffmpeg" && sourceVersion !== version);
  if (other) throw new Error(`${other.name} is of ffmpeg ${other.sourceVersion}, but the newest source is ${version}`);
}

type Library = { name: string; source: AptSource };

async function addLibraries(libraries: Library[], arch: Arch, sysroot: string, work: string): Promise<void> {
  const target = targetFor(arch);
  await installBuildPackages(words("cmake meson ninja-build nasm"));
  const platform = { mesonArguments: [], root: sysroot, prefix: "/libraries" };
  for (const { name, source } of libraries) {
    say(`ffmpeg: ${name} ${source.version} (compiled once)`);
    await compileLibrary(name, source, target, platform, work);
  }
}

/** One line for each source package that is linked. */
async function linkedVersions(packages: Unpacked[]): Promise<string[]> {
  const libc = await run("dpkg-query", ["-W", "-f", `\${source:Package} \${source:Version}`, "libc6-dev"]);
  const unpacked = packages
    .filter(({ name, source }) => !TOOLS.includes(name) && source !== "ffmpeg")
    .map(({ source, sourceVersion }) => `${source} ${sourceVersion}`);
  return [...unpacked, libc];
}
