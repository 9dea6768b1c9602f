import { closeSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { secondsToBuild, staticFfmpeg, type Wish } from "../ffmpeg/build.ts";
import type { Stage } from "../ffmpeg/components.ts";
import type { Arch } from "./base.ts";
import { paths } from "./paths.ts";
import { say } from "./report.ts";
import { run } from "./run.ts";

/** `stage`: how they were made; undefined for programs that are not ours. */
export type Tools = { ffmpeg: string; ffprobe: string; stage?: Stage };

const isNamed = () => Boolean(process.env.VODBOX_BUILD_FFMPEG && process.env.VODBOX_BUILD_FFPROBE);

/** About how long `chooseTools` takes on two cores, in seconds. */
export const expectedSeconds = (arch: Arch, wish: Wish): number => (isNamed() ? 1 : secondsToBuild(arch, wish));

/**
 * The ffmpeg to ship: the one given by VODBOX_BUILD_FFMPEG and VODBOX_BUILD_FFPROBE, else ours of a stage that satisfies `wish`, from
 * the cache or built, else that of the package ffmpeg-static where its download works.
 */
export async function chooseTools(arch: Arch, wish: Wish = "linked"): Promise<Tools> {
  const { VODBOX_BUILD_FFMPEG: ffmpeg, VODBOX_BUILD_FFPROBE: ffprobe } = process.env;
  if (ffmpeg && ffprobe) {
    for (const program of [ffmpeg, ffprobe])
      if (!isFor(arch, program)) throw new Error(`${program} is not a program for Linux on ${arch}.`);
    return { ffmpeg, ffprobe };
  }
  if (ffmpeg)
    throw new Error("VODBOX_BUILD_FFMPEG is set but VODBOX_BUILD_FFPROBE is not: both are shipped, name both.");
  const reasons: string[] = [];
  try {
    return await staticFfmpeg(arch, wish);
  } catch (error) {
    reasons.push(`Building one: ${error instanceof Error ? error.message : error}`);
  }
  if (arch === process.arch) {
    // It has no ffprobe, and those in the registry are years older than any ffmpeg worth shipping.
    if (!ffprobe) reasons.push("ffmpeg-static: it brings no ffprobe; name one with VODBOX_BUILD_FFPROBE to use it.");
    else {
      try {
        return { ffmpeg: await downloadedFfmpeg(), ffprobe };
      } catch (error) {
        reasons.push(`ffmpeg-static: ${error instanceof Error ? error.message : error}`);
      }
    }
  }
  const advice = "Name static programs with VODBOX_BUILD_FFMPEG and VODBOX_BUILD_FFPROBE and build again.";
  throw new Error(["There is no ffmpeg to ship.", ...reasons, advice].join("\n"));
}

/** npm runs no install scripts here (.npmrc), so the package's download is run only when it is needed. */
async function downloadedFfmpeg(): Promise<string> {
  const folder = join(paths.modules, "ffmpeg-static");
  await run("timeout", ["120", process.execPath, join(folder, "install.js")]);
  return join(folder, "ffmpeg");
}

/** Tests that the programs work before they are shipped; returns ffmpeg's version. */
export async function tryTools({ ffmpeg, ffprobe }: Tools): Promise<string> {
  for (const program of [ffmpeg, ffprobe]) {
    if (isDynamic(program)) say(`Warning: ${program} is not static and will only run on systems like this one.`);
  }
  const folder = mkdtempSync(join(tmpdir(), "vodbox-build-"));
  try {
    const clip = join(folder, "clip.mp4");
    const input = ["-f", "lavfi", "-i", "testsrc2=s=160x90:d=1", "-f", "lavfi", "-i", "sine=d=1"];
    // An empty environment: shipped programs must not depend on this machine's.
    await run(ffmpeg, ["-v", "error", "-nostdin", ...input, "-c:v", "libx264", "-c:a", "aac", clip], { env: {} });
    const shown = await run(ffprobe, ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", clip], {
      env: {},
    });
    if (shown.trim() !== "h264\naac") throw new Error(`ffprobe found ${shown} in the clip, not h264 and aac`);
    const version = await run(ffmpeg, ["-version"], { env: {} });
    return /^ffmpeg version (\S+)/.exec(version)?.[1] ?? "unknown";
  } catch (error) {
    throw new Error(`${ffmpeg} and ${ffprobe} do not work: ${error instanceof Error ? error.message : error}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A program that needs the system's loader names it near its beginning (ELF's PT_INTERP). */
const isDynamic = (program: string) => /\/ld-(linux|musl)/.test(beginningOf(program).toString("latin1"));

/** Scripts are accepted: they have no processor. */
function isFor(arch: Arch, program: string): boolean {
  const start = beginningOf(program);
  if (start.toString("latin1", 0, 4) !== "\x7fELF") return true;
  // ELF's e_machine.
  return start.readUInt16LE(18) === { x64: 0x3e, arm64: 0xb7 }[arch];
}

function beginningOf(program: string): Buffer {
  const start = Buffer.alloc(4096);
  const file = openSync(program, "r");
  readSync(file, start);
  closeSync(file);
  return start;
}
