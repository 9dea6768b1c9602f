import { rm } from "node:fs/promises";
import { join } from "node:path";
import { INIT_NAME } from "./arguments.ts";
import { toImageColors } from "./color.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { run, type SourceRun, untrustedInput } from "./ffmpeg.ts";
import type { Segment, Written } from "./package.ts";
import { copyResult, listResults, statResult } from "./results.ts";
import { type SegmentReader, writeSampleVideo } from "./sample-video.ts";

type ThumbnailOptions = {
  outDir: string;
  /** Relative to `outDir`. */
  name: string;
  spec: EncodingSpec;
  videos: Written[];
  audios: Written[];
  ffmpeg: string;
  run: SourceRun;
  read: SegmentReader;
};

const CANDIDATE_SEGMENTS = 8;
const MAX_IMAGE_BYTES = 64 * 2 ** 20;

/**
 * Creates the thumbnail from the encoded segments: keyframes of up to eight segments of a small rendition, which takes
 * a tenth of a second and no other pass over the source. Audio-only sources get an image of the waveform.
 */
export async function writeThumbnail({
  outDir,
  name,
  spec,
  videos,
  audios,
  ffmpeg,
  run: common,
  read,
}: ThumbnailOptions): Promise<void> {
  const limit = spec.thumbnail.max_short_side;
  const shortSide = ({ init }: Written) => Math.min(init.width, init.height);
  const source = videos.find((one) => shortSide(one) <= limit) ?? videos.at(-1) ?? audios[0];
  if (!source) throw new MediaError("encode_failed", "The source has no frame for a thumbnail.", true);

  const sample = join(common.cwd, "sample.mp4");
  const isWhole = source.segments.length <= 2;
  const segments = isWhole ? source.segments : chooseSegments(source.segments);
  await writeSampleVideo({ name: source.name, segments, read }, sample);
  const isVideo = source.init.width > 0;
  const decoding = isVideo && !isWhole ? ["-skip_frame", "nokey"] : [];
  const quality = ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-q:v", "4", "-f", "image2"];
  const colors = isVideo ? toImageColors(await read(source.name, INIT_NAME), "jpeg") : "";
  const filter = isVideo
    ? [
        "-an",
        "-vf",
        [...(isWhole ? [EVERY_HALF_SECOND] : []), colors].join(","),
        "-fps_mode",
        "passthrough",
        "-frames:v",
        "32",
      ]
    : ["-filter_complex", WAVE, "-frames:v", "1"];
  await run(ffmpeg, {
    ...common,
    args: [
      ...["-nostdin", "-hide_banner", "-y", "-loglevel", "error", ...decoding, ...untrustedInput(sample)],
      ...[...filter, ...quality, `file:${join(common.cwd, "still-%03d.jpg")}`],
    ],
    timeLimitMs: 120_000,
  });
  await copyResult(await richest(common.cwd), join(outDir, name), MAX_IMAGE_BYTES);
  await rm(sample, { force: true });
}

/** All of a short video, else segments spread over it: the first and last seconds are often fades and credits. */
function chooseSegments(segments: Segment[]): Segment[] {
  const step = segments.length / CANDIDATE_SEGMENTS;
  const spread = Array.from({ length: CANDIDATE_SEGMENTS }, (_, i) => Math.floor((i + 0.5) * step));
  return [...new Set(spread)].map((index) => segments[index]).filter((one) => one !== undefined);
}

/** At equal quality the largest JPEG has the most detail, so a black or faded frame is never chosen. */
async function richest(folder: string): Promise<string> {
  let best = { path: "", size: 0 };
  for (const file of await listResults(folder)) {
    if (!/^still-\d+\.jpg$/.test(file)) continue;
    const { size } = await statResult(join(folder, file));
    if (size > best.size) best = { path: join(folder, file), size };
  }
  if (!best.path) throw new MediaError("encode_failed", "The thumbnail could not be created.", true);
  return best.path;
}

/** Always includes the first frame, however short the video: a constant-rate filter would drop it. */
const EVERY_HALF_SECOND = "select=isnan(prev_selected_t)+gte(t-prev_selected_t\\,0.5)";

const WAVE = [
  "color=c=0x10141c:s=1280x720:d=1[ground]",
  "[0:a]aformat=channel_layouts=mono,showwavespic=s=1280x360:colors=0x7aa2f7[wave]",
  "[ground][wave]overlay=0:180,format=yuvj420p",
].join(";");
