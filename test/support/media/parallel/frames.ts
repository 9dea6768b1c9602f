import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { encodeArguments, type FrameRange } from "#media/arguments.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import type { StoredPlan } from "#media/parallel/stored-plan.ts";
import { binaries, ffmpeg, ffprobe } from "../sources.ts";

const exec = promisify(execFile);

const HASHES = ["-f", "framehash", "-hash", "murmur3", "-"];

/**
 * Hashes of the frames that reach the encoder of each rendition, in the order of presentation: the arguments are those of
 * a run, with the encoders replaced.
 */
export async function framesToEncode(input: string, plan: StoredPlan, range?: FrameRange): Promise<string[]> {
  const onlyVideo = { ...plan, audio: [] };
  const args = encodeArguments({ input, outDir: "/nowhere", plan: onlyVideo, whole: plan, spec, range });
  const graph = args.indexOf("-filter_complex");
  const outputs = encodedRenditions(plan).flatMap((_, index) => ["-map", `[v${index}]`]);
  // The tracks that a run uses determine when its clock begins: one over the whole source uses all of them.
  const all = plan.audio.flatMap(({ track }) => ["-map", `0:${track.index}`, "-c", "copy", "-f", "null", "-"]);
  const others = range ? args.slice(args.findLastIndex((arg) => arg.startsWith("file:/nowhere")) + 1) : all;
  // The system's ffmpeg has the muxer for hashes.
  const before = args.slice(0, graph + 2).filter((arg) => arg !== "-progress" && arg !== "pipe:1");
  const { stdout } = await exec("ffmpeg", [...before, ...outputs, ...HASHES, ...others], { maxBuffer: 1 << 28 });
  return stdout
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [stream, , , , , hash] = line.split(",").map((part) => part.trim());
      return `${stream} ${hash}`;
    });
}

/** All but the one that is the source's video. */
const encodedRenditions = ({ video }: StoredPlan) => (video?.renditions ?? []).slice(video?.passthrough ? 1 : 0);

/** Times of all packets of a rendition, as [pts, dts, isKey], in units of its timescale. */
export const packetsOf = (dir: string, rendition: string) => packetsIn(join(dir, rendition, "playlist.m3u8"));

export async function packetsIn(playlist: string): Promise<string[]> {
  const lines = await ffprobe("-show_entries", "packet=pts,dts,flags", "-of", "csv=p=0", playlist);
  return lines.split("\n").filter(Boolean);
}

/** Hashes of what is decoded of a rendition, with its times. */
export const samplesOf = (dir: string, rendition: string) => hashesIn(join(dir, rendition, "playlist.m3u8"));

export const hashesIn = async (playlist: string) => (await ffmpeg("-i", playlist, ...HASHES)).toString();

/** PSNR in dB of each frame of a rendition against the same frame of another encode of it. */
export async function similarity(dir: string, other: string, rendition: string): Promise<number[]> {
  const stats = join(dirname(dir), `psnr-${rendition}.log`);
  const input = (folder: string) => ["-i", join(folder, rendition, "playlist.m3u8")];
  await ffmpeg(...input(dir), ...input(other), "-lavfi", `psnr=stats_file=${stats}`, "-f", "null", "-");
  const { stdout } = await exec("cat", [stats]);
  return [...stdout.matchAll(/psnr_avg:(\S+)/g)].map(([, value]) => (value === "inf" ? 100 : Number(value)));
}

export { binaries };
