import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Binaries } from "#media/ffmpeg.ts";
import { copyCached, keep, recipeOf } from "./recipe-cache.ts";

const exec = promisify(execFile);

const shipped = (tool: string) => {
  const path = fileURLToPath(new URL(`../../../build/assets/bin/${tool}`, import.meta.url));
  return existsSync(path) ? path : tool;
};

/** The shipped programs are tested. Sources are always created by the system's full ffmpeg. */
export const binaries: Binaries = {
  ffmpeg: process.env.VODBOX_FFMPEG ?? shipped("ffmpeg"),
  ffprobe: process.env.VODBOX_FFPROBE ?? shipped("ffprobe"),
};

export const temporaryFolder = (name: string) => mkdtempSync(join(tmpdir(), `${name}-`));

/** Below the priority of servers, players and publishers, which other tests run in real time. */
const NICE = ["-n", "10", "ffmpeg", "-nostdin", "-y"];

/** Runs the system's ffmpeg and returns its stdout. A file that it only generates is copied from the cache. */
export async function ffmpeg(...args: string[]): Promise<Buffer> {
  const cached = recipeOf(args);
  const output = args.at(-1) as string;
  if (cached && copyCached(cached, output)) return Buffer.alloc(0);
  const { stdout } = await exec("nice", [...NICE, "-v", "error", ...args], {
    encoding: "buffer",
    maxBuffer: 1 << 28,
  });
  if (cached) keep(cached, output);
  return stdout;
}

/** Like `ffmpeg`, but returns its warnings and errors; empty when a file decodes cleanly. */
export async function complaints(...args: string[]): Promise<string> {
  const { stderr } = await exec("nice", [...NICE, "-v", "warning", ...args], { maxBuffer: 1 << 28 });
  return stderr;
}

/** A checksum of each packet of the video. `more`: options of the output. */
export const packetsOf = async (input: string, ...more: string[]): Promise<string[]> =>
  (await ffmpeg("-i", input, "-map", "0:v:0", "-c", "copy", ...more, "-f", "framemd5", "-"))
    .toString()
    .split("\n")
    .flatMap((line) => (/^\d+, .*?, *(\w{32})/.exec(line) ?? []).slice(1));

export async function ffprobe(...args: string[]): Promise<string> {
  return (await exec("ffprobe", ["-v", "error", ...args], { maxBuffer: 1 << 28 })).stdout;
}

export const picture = (size: string, rate: string, seconds: number) => [
  "-f",
  "lavfi",
  "-i",
  `testsrc2=s=${size}:r=${rate}:d=${seconds}`,
];
export const sound = (seconds: number) => ["-f", "lavfi", "-i", `sine=d=${seconds}`];
export const fast = ["-c:v", "libx264", "-preset", "ultrafast"];

/**
 * Writes a long source: the video that `video` makes, without B-frames, so many times in a row, and the audio of `audio`. Only
 * the first repetition is encoded.
 */
export async function repeated(path: string, times: number, video: string[], audio: string[] = []): Promise<void> {
  const once = `${path}.once.mp4`;
  await ffmpeg(...video, once);
  const maps = audio.length > 0 ? ["-map", "0:v", "-map", "1:a"] : [];
  await ffmpeg("-stream_loop", String(times - 1), "-i", once, ...audio, ...maps, "-c:v", "copy", path);
  rmSync(once);
}
