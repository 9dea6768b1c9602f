import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Arch } from "#scripts/build/base.ts";
import { withLock } from "#scripts/build/cache.ts";
import { own, paths } from "#scripts/build/paths.ts";
import { hasBuild, staticFfmpeg } from "#scripts/ffmpeg/build.ts";
import type { Stage } from "#scripts/ffmpeg/components.ts";
import { artifactNames } from "#scripts/release/names.ts";
import { isNightly } from "./amount.ts";
import { EXECUTABLE, isUsed } from "./executable.ts";
import { newGpgKey, stopGpgAgent } from "./gpg-key.ts";
import { newReleaseKey } from "./release-key.ts";

const folder = join(paths.root, "release");
const SOURCES = [
  ...[
    "cli/**",
    "src/**",
    "storage/**",
    "scripts/build/**",
    "scripts/clients/**",
    "scripts/debian/**",
    "scripts/ffmpeg/**",
    "scripts/release/**",
  ],
  ...[
    "scripts/release.ts",
    "scripts/licences.ts",
    "scripts/vodbox.service",
    "install.sh",
    "deploy/*",
    "package-lock.json",
  ],
];

/** Both processors, with the ffmpeg that is published: compiling it takes ten minutes for each. */
const isWhole = isNightly;

/** What is released here: arm64 also where its ffmpeg is in the cache. */
export const RELEASED: readonly Arch[] = isWhole || hasBuild("arm64") ? ["x64", "arm64"] : ["x64"];

/** The stage of the ffmpeg in the release that was made last. */
const stageMark = join(paths.root, "build/release-stage");

const isCurrent = () => {
  const sums = statSync(join(folder, "SHA256SUMS"), { throwIfNoEntry: false });
  return (
    sums &&
    existsSync(stageMark) &&
    // That of a nightly run has the complete ffmpeg.
    (!isWhole || readFileSync(stageMark, "utf8") === "complete") &&
    RELEASED.every((arch) => existsSync(join(folder, artifactNames(arch).executable))) &&
    globSync(SOURCES, { cwd: paths.root }).every((path) => statSync(join(paths.root, path)).mtimeMs <= sums.mtimeMs)
  );
};

/** The directory that `npm run release` writes, which is made when it is missing or older than its sources. */
export async function release(): Promise<string> {
  await withLock(join(paths.root, "build/release.lock"), async () => {
    if (isCurrent()) return;
    // Not by npm: it may install packages, which the running tests use.
    const script = join(paths.root, "scripts/release.ts");
    const args = [...(RELEASED.length === 1 ? ["--arch", "x64"] : []), ...(isWhole ? [] : ["--stage", "linked"])];
    if (!isWhole && isUsed) args.push("--executable", EXECUTABLE);
    const keys = join(paths.root, "build/release-key");
    const home = join(keys, "gpg");
    args.push("--minisign-key", newReleaseKey(keys).secret, "--apt", "--apt-key", newGpgKey(home));
    args.push("--base-url", "https://video.example.com/releases/");
    const options = { cwd: paths.root, encoding: "utf8", env: { ...process.env, GNUPGHOME: home } } as const;
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], options);
    stopGpgAgent(home);
    if (status !== 0) throw new Error(`scripts/release.ts ended with ${status}:\n${stdout}\n${stderr}`);
    // The release uses the best build that is in the cache.
    const { stage } = await staticFfmpeg("x64", isWhole ? "complete" : "linked");
    writeFileSync(stageMark, stage);
  });
  return folder;
}

/** The stage of the ffmpeg that is in the release. */
export async function releasedStage(): Promise<Stage> {
  await release();
  return readFileSync(stageMark, "utf8") as Stage;
}

/** Path of the artifact whose name ends with `suffix`, such as "linux-x64". */
export async function artifact(suffix: string): Promise<string> {
  const path = join(await release(), `vodbox-${own.version}-${suffix}`);
  if (!existsSync(path)) throw new Error(`The release has no ${path}.`);
  return path;
}

/** How long a test may wait for `npm run release`, where ffmpeg has been compiled before. */
export const RELEASE_MS = 1_200_000;
