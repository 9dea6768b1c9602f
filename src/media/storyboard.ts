import { rm } from "node:fs/promises";
import { join } from "node:path";
import { INIT_NAME } from "./arguments.ts";
import { toImageColors } from "./color.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { run, type SourceRun, untrustedInput } from "./ffmpeg.ts";
import type { Segment, Written } from "./package.ts";
import { makeFolder, statResult, writeResult } from "./results.ts";
import { type SegmentReader, writeSampleVideo } from "./sample-video.ts";

export type Storyboard = {
  /** File names relative to the directory of the manifests. */
  name: string;
  image: string;
  bytes: number;
  columns: number;
  rows: number;
  tileWidth: number;
  tileHeight: number;
  intervalSeconds: number;
};

type StoryboardOptions = {
  outDir: string;
  /** Path of the WebVTT file, relative to `outDir`. */
  name: string;
  spec: EncodingSpec;
  /** Largest first. */
  videos: Written[];
  ffmpeg: string;
  run: SourceRun;
  read: SegmentReader;
};

/**
 * Writes a sheet of thumbnails over the whole video, from keyframes of the smallest rendition, and a WebVTT file that
 * maps times to regions (Media Fragments URI 1.0, 4.2.2). Null for audio-only sources, and when it could not be
 * produced: the video plays without it. Throws MediaError `aborted`.
 */
export async function writeStoryboard(options: StoryboardOptions): Promise<Storyboard | null> {
  const source = options.videos.at(-1);
  if (!source) return null;
  try {
    return await write(options, source);
  } catch (error) {
    if (error instanceof MediaError && error.code !== "aborted") return null;
    throw error;
  }
}

async function write(
  { outDir, name, spec, ffmpeg, run: common, read }: StoryboardOptions,
  source: Written,
): Promise<Storyboard> {
  const { durationSeconds, init, segments } = source;
  const { image: template, tile_short_side } = spec.storyboard;
  const intervalSeconds = storyboardInterval(durationSeconds, spec);
  const tiles = Math.max(1, Math.ceil(durationSeconds / intervalSeconds - 0.01));
  const columns = Math.min(spec.storyboard.columns, tiles);
  const rows = Math.ceil(tiles / columns);
  const scale = tile_short_side / Math.min(init.width, init.height);
  const [tileWidth, tileHeight] = [init.width, init.height].map((side) =>
    Math.max(2, Math.round((side * scale) / 2) * 2),
  ) as [number, number];
  const cwd = join(common.cwd, "storyboard");
  await makeFolder(cwd);
  const sample = join(cwd, "sample.mp4");
  const chosen = nearest(segments, intervalSeconds, tiles);
  await writeSampleVideo({ name: source.name, segments: chosen, read }, sample);
  const image = template.replace("$Number$", "1");
  // Every tile gets the keyframe nearest to its time, even where one is missing.
  const grid = `fps=${1000}/${Math.round(intervalSeconds * 1000)}:start_time=0:round=near:eof_action=pass`;
  const colors = toImageColors(await read(source.name, INIT_NAME), "jpeg");
  await run(ffmpeg, {
    ...common,
    cwd,
    args: [
      ...["-nostdin", "-hide_banner", "-y", "-loglevel", "error", "-skip_frame", "nokey", ...untrustedInput(sample)],
      ...[
        "-an",
        "-vf",
        `${grid},scale=${tileWidth}:${tileHeight},${colors},tile=${columns}x${rows}:nb_frames=${tiles}`,
      ],
      ...["-frames:v", "1", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-q:v", "4", "-f", "image2", "-update", "1"],
      `file:${join(outDir, image)}`,
    ],
    timeLimitMs: 120_000,
  });
  const board = { name, image, columns, rows, tileWidth, tileHeight, intervalSeconds };
  const text = storyboardVtt(board, durationSeconds);
  await writeResult(join(outDir, name), text);
  await rm(cwd, { recursive: true, force: true });
  return { ...board, bytes: (await statResult(join(outDir, image))).size + Buffer.byteLength(text) };
}

/** Seconds between thumbnails: the keyframe interval, or enough segments that the sheet holds all of them. */
export function storyboardInterval(
  durationSeconds: number,
  { storyboard, gop_seconds, segment_seconds }: EncodingSpec,
): number {
  const least = durationSeconds / storyboard.max_tiles;
  return least <= gop_seconds ? gop_seconds : Math.ceil(least / segment_seconds) * segment_seconds;
}

/** The segments, in order, that contain the thumbnails of the grid. */
function nearest(segments: Segment[], intervalSeconds: number, tiles: number): Segment[] {
  const chosen = new Set<Segment>();
  let at = 0;
  let start = 0;
  for (let tile = 0; tile < tiles; tile++) {
    // Half a second early: a segment may begin slightly after its nominal time.
    const time = tile * intervalSeconds + 0.5;
    for (
      let next = segments[at];
      next && at < segments.length - 1 && start + next.durationSeconds <= time;
      next = segments[++at]
    )
      start += next.durationSeconds;
    const segment = segments[at];
    if (segment) chosen.add(segment);
  }
  return [...chosen];
}

function storyboardVtt(board: Omit<Storyboard, "bytes">, durationSeconds: number): string {
  const { image, columns, tileWidth, tileHeight, intervalSeconds } = board;
  const cues: string[] = [];
  for (let tile = 0; tile === 0 || tile * intervalSeconds < durationSeconds - 0.01 * intervalSeconds; tile++) {
    const from = tile * intervalSeconds;
    const to = Math.max(from + 0.001, Math.min(from + intervalSeconds, durationSeconds));
    const region = [(tile % columns) * tileWidth, Math.floor(tile / columns) * tileHeight, tileWidth, tileHeight];
    cues.push(`${clock(from)} --> ${clock(to)}\n${image}#xywh=${region.join(",")}\n`);
  }
  return ["WEBVTT\n", ...cues].join("\n");
}

/** WebVTT's HH:MM:SS.mmm. */
function clock(seconds: number): string {
  const whole = Math.round(seconds * 1000);
  const parts = [Math.floor(whole / 3_600_000), Math.floor(whole / 60_000) % 60, Math.floor(whole / 1000) % 60];
  return `${parts.map((part) => String(part).padStart(2, "0")).join(":")}.${String(whole % 1000).padStart(3, "0")}`;
}
