import { spawnSync } from "node:child_process";
import { existsSync, globSync, statSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../../scripts/build/cache.ts";
import { own, paths } from "../../scripts/build/paths.ts";

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

const isCurrent = () => {
  const sums = statSync(join(folder, "SHA256SUMS"), { throwIfNoEntry: false });
  return (
    sums &&
    globSync(SOURCES, { cwd: paths.root }).every((path) => statSync(join(paths.root, path)).mtimeMs <= sums.mtimeMs)
  );
};

/** The directory that `npm run release` writes, which is made when it is missing or older than its sources. */
export async function release(): Promise<string> {
  await withLock(join(paths.root, "build/release.lock"), async () => {
    if (isCurrent()) return;
    // Not by npm: it may install packages, which the running tests use.
    const script = join(paths.root, "scripts/release.ts");
    const { status, stdout, stderr } = spawnSync(process.execPath, [script], { cwd: paths.root, encoding: "utf8" });
    if (status !== 0) throw new Error(`scripts/release.ts ended with ${status}:\n${stdout}\n${stderr}`);
  });
  return folder;
}

/** Path of the artifact whose name ends with `suffix`, such as "linux-x64". */
export async function artifact(suffix: string): Promise<string> {
  const path = join(await release(), `vodbox-${own.version}-${suffix}`);
  if (!existsSync(path)) throw new Error(`The release has no ${path}.`);
  return path;
}

/** How long a test may wait for `npm run release`, where ffmpeg has been compiled before. */
export const RELEASE_MS = 1_200_000;
