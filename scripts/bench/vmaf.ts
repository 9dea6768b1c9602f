import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { probe } from "#media/probe.ts";
import { binaries } from "#test/support/media/sources.ts";

const run = promisify(execFile);
const { VODBOX_BENCH_CLIPS, VODBOX_BENCH_VMAF = "ffmpeg" } = process.env;

/** Paths of the clips that the benches of encoding are given, by name. They stay outside of the project. Throws Error without any. */
export function benchClips(): { name: string; path: string }[] {
  if (!VODBOX_BENCH_CLIPS)
    throw new Error("Set VODBOX_BENCH_CLIPS to a directory of clips, and VODBOX_BENCH_VMAF to an ffmpeg with libvmaf.");
  return readdirSync(VODBOX_BENCH_CLIPS)
    .sort()
    .map((name) => ({ name, path: join(VODBOX_BENCH_CLIPS, name) }));
}

/**
 * VMAF (model `vmaf_v0.6.1`, mean of every third frame, one decimal more than is significant) of the first seconds of a file,
 * scaled to the size of the source. Frames are paired by their number.
 */
export async function vmafOf(file: string, source: string, seconds: number): Promise<number> {
  const { width, height } = (await probe(source, binaries)).video ?? { width: 0, height: 0 };
  const frames = "settb=1/1000,setpts=N";
  const graph = `[0:v]${frames},scale=${width}:${height}:flags=bicubic[d];[1:v]${frames}[r];[d][r]libvmaf=n_threads=2:n_subsample=3`;
  const read = (path: string) => ["-t", String(seconds), "-i", path];
  const args = [
    "-nostdin",
    "-hide_banner",
    ...read(file),
    ...read(source),
    "-filter_complex",
    graph,
    "-f",
    "null",
    "-",
  ];
  const { stderr } = await run(VODBOX_BENCH_VMAF, args, { maxBuffer: 2 ** 26 });
  const [, score] = /VMAF score: ([\d.]+)/.exec(stderr) ?? [];
  if (score === undefined) throw new Error(`${VODBOX_BENCH_VMAF} reports no VMAF.`);
  return Math.round(Number(score) * 100) / 100;
}

/** The segments of a rendition, joined to one file in its directory. */
export function joinedSegments(dir: string): string {
  const path = join(dir, "judged.mp4");
  const segments = readdirSync(dir).filter((name) => name.endsWith(".m4s"));
  writeFileSync(path, Buffer.concat(["init.mp4", ...segments.sort()].map((name) => readFileSync(join(dir, name)))));
  return path;
}
