import { closeSync, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { staticFfmpeg } from "../ffmpeg/build.ts";
import type { Arch } from "./base.ts";
import { paths } from "./paths.ts";
import { run } from "./run.ts";

export type Tools = { ffmpeg: string; ffprobe: string };

/**
 * The ffmpeg to ship: the one named by VODBOX_BUILD_FFMPEG and VODBOX_BUILD_FFPROBE, else ours compiled from the
 * distribution's source, else that of the package ffmpeg-static where its download works.
 */
export async function chooseTools(arch: Arch): Promise<Tools> {
  const { VODBOX_BUILD_FFMPEG: ffmpeg, VODBOX_BUILD_FFPROBE: ffprobe } = process.env;
  if (ffmpeg && ffprobe) return { ffmpeg, ffprobe };
  if (ffmpeg)
    throw new Error("VODBOX_BUILD_FFMPEG is set but VODBOX_BUILD_FFPROBE is not: both are shipped, name both.");
  const reasons: string[] = [];
  if (arch === process.arch) {
    try {
      return await staticFfmpeg();
    } catch (error) {
      reasons.push(`Compiling one: ${error instanceof Error ? error.message : error}`);
    }
    // It has no ffprobe, and those on the registry are years older than any ffmpeg worth shipping.
    if (!ffprobe) reasons.push("ffmpeg-static: it brings no ffprobe; name one with VODBOX_BUILD_FFPROBE to use it.");
    else {
      try {
        return { ffmpeg: await downloadedFfmpeg(), ffprobe };
      } catch (error) {
        reasons.push(`ffmpeg-static: ${error instanceof Error ? error.message : error}`);
      }
    }
  } else {
    reasons.push(`This machine is ${process.arch}; one for ${arch} is not compiled here.`);
  }
  const advice = "Name static programs with VODBOX_BUILD_FFMPEG and VODBOX_BUILD_FFPROBE and build again.";
  throw new Error(["There is no ffmpeg to ship.", ...reasons, advice].join("\n"));
}

/** npm installs without scripts here (.npmrc), so the package's download is run when it is wanted, and only then. */
async function downloadedFfmpeg(): Promise<string> {
  const folder = join(paths.modules, "ffmpeg-static");
  await run("timeout", ["120", process.execPath, join(folder, "install.js")]);
  return join(folder, "ffmpeg");
}

/** Shows that the programs do what vodbox is about, before they are shipped; gives back ffmpeg's version. */
export async function tryTools({ ffmpeg, ffprobe }: Tools): Promise<string> {
  for (const program of [ffmpeg, ffprobe]) {
    if (isDynamic(program))
      console.log(`Warning: ${program} is not static and will only run on systems like this one.`);
  }
  const folder = mkdtempSync(join(tmpdir(), "vodbox-build-"));
  try {
    const clip = join(folder, "clip.mp4");
    const input = ["-f", "lavfi", "-i", "testsrc2=s=160x90:d=1", "-f", "lavfi", "-i", "sine=d=1"];
    // An empty environment: what is shipped may not lean on this machine's.
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

/** A program that wants the system's loader names it near its beginning (ELF's PT_INTERP). */
function isDynamic(program: string): boolean {
  const start = Buffer.alloc(4096);
  const file = openSync(program, "r");
  readSync(file, start);
  closeSync(file);
  return /\/ld-(linux|musl)/.test(start.toString("latin1"));
}
