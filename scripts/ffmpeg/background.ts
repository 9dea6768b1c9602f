import { spawn } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join, relative } from "node:path";
import { paths } from "../build/paths.ts";
import { isInstalled } from "../build/run.ts";
import type { Tools } from "../build/tools.ts";
import { cache, cachedBuild, isFresh } from "./cached.ts";
import { targetFor } from "./recipe.ts";
import { missingPackages } from "./source.ts";

const LOG = join(cache, "complete.log");

/**
 * After a build with linked programs, starts to compile the complete ones: at the lowest priority, once at a time on this machine, and
 * independently of this process. The next build uses the result, and a server that runs from the sources of this checkout uses
 * it at once. Says what is missing until then. Not in CI, where a machine is discarded, and would be measured with it.
 */
export async function completeInBackground({ stage, ffmpeg }: Tools): Promise<void> {
  if (stage === undefined || stage === "complete") return;
  const lacking = stage === "linked" ? "It cannot encode AV1." : "It has fixed addresses.";
  const { packages, recipeHash } = targetFor(process.arch as "x64");
  // It is there, but older than a week: a build in the background checks for a newer source.
  const isThere = cachedBuild({ complete: recipeHash }, isFresh) !== null;
  if (process.env.CI || isThere) return;
  const missing = process.geteuid?.() === 0 ? [] : await missingPackages(packages);
  if (missing.length > 0) {
    console.log(
      `This ffmpeg is linked from the distribution's archives. ${lacking} For the complete one, install as root`,
    );
    console.log(`${missing.join(" ")}\nand run: npm run build -- --complete`);
    return;
  }
  mkdirSync(cache, { recursive: true });
  const log = openSync(LOG, "a");
  const idle = (await isInstalled("ionice")) ? ["ionice", "-c", "3"] : [];
  const program = [process.execPath, join(import.meta.dirname, "complete.ts"), ffmpeg];
  // The first process keeps the lock; another one ends at once.
  const command = ["flock", "--nonblock", join(cache, "lock-background"), "nice", "-n", "19", ...idle, ...program];
  const child = spawn(command[0] as string, command.slice(1), {
    detached: true,
    stdio: ["ignore", log, log],
    cwd: paths.root,
  });
  child.on("error", () => {});
  child.unref();
  console.log(
    `This ffmpeg is linked from the distribution's archives. ${lacking} The complete one is being compiled in`,
  );
  console.log(`the background at low priority; the next build uses it. Log: ${shown(LOG)}`);
}

const shown = (path: string) =>
  process.env.HOME ? path.replace(new RegExp(`^${process.env.HOME}/`), "~/") : relative("/", path);
