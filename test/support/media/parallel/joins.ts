import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PlannedRendition } from "#media/ladder.ts";
import type { Rate } from "#src/lib/codecs/rate.ts";

const exec = promisify(execFile);
const LARGE = { maxBuffer: 1 << 28 };

/** x264's assumption about the decoder's buffer at the start of a stream. */
const INITIALLY_FULL = 0.9;

/** What parts cost in comparison with one run, of one rendition. */
export type JoinQuality = {
  rendition: string;
  bits: { parts: number; whole: number };
  /** Mean SSIM of all frames against the source. */
  ssim: { parts: number; whole: number };
  /** SSIM of the second around each join, relative to one run, divided by the same of all other frames: the least. */
  atJoins: number;
  /** The largest part of a frame that is missing when it is decoded, in seconds of the maximum bitrate. */
  underflow: { parts: number; whole: number };
  /** Frames that are not there when they are decoded. */
  late: { parts: number; whole: number };
};

type Compared = {
  /** The source, at the frame rate of the renditions. */
  input: string;
  rendition: PlannedRendition;
  rate: Rate;
  /** Directories of both encodes. */
  parts: string;
  whole: string;
  /** The first frame of each chunk but the first. */
  joins: readonly number[];
  /** For files of statistics. */
  folder: string;
};

export async function joinQuality(options: Compared): Promise<JoinQuality> {
  const { rendition, rate, joins, folder } = options;
  const playlist = (dir: string) => join(dir, rendition.name, "playlist.m3u8");
  const both = async <T>(measure: (playlist: string, name: string) => Promise<T>) => ({
    parts: await measure(playlist(options.parts), "parts"),
    whole: await measure(playlist(options.whole), "whole"),
  });
  const sizes = await both((path) => frameBits(path));
  const ssims = await both((path, name) =>
    similarities(path, options.input, { ...rendition, stats: join(folder, `ssim-${rendition.name}-${name}.log`) }),
  );
  const half = Math.round(rate.num / rate.den / 2);
  const isAt = (frame: number, at: number) => frame >= at - half && frame < at + half;
  const relative = (isChosen: (frame: number) => boolean) => {
    const chosen = (values: number[]) => mean(values.filter((_, frame) => isChosen(frame)));
    return chosen(ssims.parts) / chosen(ssims.whole);
  };
  const elsewhere = relative((frame) => !joins.some((at) => isAt(frame, at)));
  const buffers = { parts: decoded(sizes.parts, options), whole: decoded(sizes.whole, options) };
  const each = <T, U>({ parts, whole }: { parts: T; whole: T }, of: (one: T) => U) => ({
    parts: of(parts),
    whole: of(whole),
  });
  return {
    rendition: rendition.name,
    bits: each(sizes, (all) => all.reduce((sum, bits) => sum + bits, 0)),
    ssim: each(ssims, mean),
    atJoins: Math.min(...joins.map((at) => relative((frame) => isAt(frame, at)) / elsewhere)),
    underflow: each(buffers, ({ underflow }) => underflow),
    late: each(buffers, ({ late }) => late),
  };
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Bits of each frame, in the order of decoding. */
async function frameBits(playlist: string): Promise<number[]> {
  const args = ["-v", "error", "-show_entries", "packet=size", "-of", "csv=p=0", playlist];
  const { stdout } = await exec("ffprobe", args, LARGE);
  return stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => Number.parseInt(line, 10) * 8);
}

/** A decoder's buffer that is filled at the maximum bitrate, and from which a frame is taken at each frame time. */
function decoded(bits: readonly number[], { rendition, rate }: Compared): { underflow: number; late: number } {
  const { maxBitrate, buffer } = rendition;
  let fullness = INITIALLY_FULL * buffer;
  let most = 0;
  let late = 0;
  for (const frame of bits) {
    if (frame > fullness) {
      most = Math.max(most, frame - fullness);
      late++;
    }
    fullness = Math.min(buffer, Math.max(0, fullness - frame) + (maxBitrate * rate.den) / rate.num);
  }
  return { underflow: most / maxBitrate, late };
}

/** SSIM of each frame, in the order of presentation. */
async function similarities(
  playlist: string,
  input: string,
  { width, height, stats }: PlannedRendition & { stats: string },
): Promise<number[]> {
  const graph = `[1:v:0]scale=${width}:${height}:flags=bicubic,format=yuv420p[s];[0:v:0][s]ssim=stats_file=${stats}`;
  await exec(
    "ffmpeg",
    ["-nostdin", "-v", "error", "-i", playlist, "-i", input, "-lavfi", graph, "-f", "null", "-"],
    LARGE,
  );
  return [...(await readFile(stats, "utf8")).matchAll(/ All:([\d.]+)/g)].map(([, value]) => Number(value));
}
