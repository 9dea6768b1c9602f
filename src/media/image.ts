import type { Readable } from "node:stream";
import { toImageColors } from "./color.ts";
import { type RunOptions, run } from "./ffmpeg.ts";

export const FIT_MODES = ["preserve", "crop", "pad", "stretch"] as const;
export type FitMode = (typeof FIT_MODES)[number];
/** In pixels, even. Null: computed from the other one and the aspect ratio. */
export type Box = { width: number | null; height: number | null; fit: FitMode };
/** Degrees clockwise, and then mirrored. Width and height of a box are those of the result. */
export type Rotation = { rotate: 0 | 90 | 180 | 270; isFlippedHorizontally: boolean; isFlippedVertically: boolean };
export const NO_ROTATION: Rotation = { rotate: 0, isFlippedHorizontally: false, isFlippedVertically: false };
export type StillFormat = "jpg" | "png" | "webp";
export type AnimatedFormat = "webp" | "gif";

/** The source of the image: a poster, or media segments that begin at a keyframe. */
export type ImageSource =
  | { input: Readable; kind: "image" }
  // The init segment of the video, which is also part of `input`; null without one.
  | { input: Readable; kind: "video"; init: Buffer | null };
type Running = Pick<RunOptions, "cwd" | "signal" | "killSignal" | "pidDir"> & { ffmpeg: string };

const TIME_LIMIT_MS = 10_000;
/** An animation is suspended for half of the time, and five seconds, while still images are drawn (precedence.ts). */
const SUSPENDABLE_TIME_LIMIT_MS = 2 * TIME_LIMIT_MS + 5000;
const MEMORY_BYTES = 2 ** 30;
/** 8192 × 8192: a small file may decompress to far more. */
const MAX_PIXELS = 2 ** 26;
/** Below the maximum that is read from stdout: longer output ends earlier, and is complete. */
const MAX_ANIMATION_BYTES = 15 * 2 ** 20;

export const READABLE = { image: "jpeg_pipe,png_pipe,webp_pipe,gif", video: "mov,mpegts" };

const STILL: Record<StillFormat, string[]> = {
  jpg: ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-q:v", "3", "-f", "image2pipe"],
  png: ["-c:v", "png", "-pix_fmt", "rgb24", "-f", "image2pipe"],
  webp: ["-c:v", "libwebp", "-pix_fmt", "yuv420p", "-quality", "80", "-f", "webp"],
};

const COLORS = { jpg: "jpeg", png: "rgb", webp: "webp", gif: "rgb" } as const;

const ANIMATED: Record<AnimatedFormat, string[]> = {
  // The faster encoding methods: the slower ones take too long for ten seconds of video.
  webp: ["-c:v", "libwebp_anim", "-pix_fmt", "yuv420p", "-quality", "60", "-compression_level", "1"],
  gif: ["-c:v", "gif"],
};

/**
 * The frame that is shown `offsetSeconds` after the first one of `input`, or the last. Never enlarged. Throws
 * MediaError; `timeout` after ten seconds.
 */
export function still(
  source: ImageSource,
  request: { offsetSeconds: number; box: Box; rotation?: Rotation; format: StillFormat },
  running: Running,
): Promise<Buffer> {
  const shaped = [...turned(request.rotation ?? NO_ROTATION), ...fitted(request.box)];
  const filters =
    source.kind === "video"
      ? [frameAt(request.offsetSeconds), ...shaped, toImageColors(source.init, COLORS[request.format])]
      : shaped;
  const output = ["-vf", filters.join(","), "-frames:v", "1", ...STILL[request.format]];
  return draw(source, output, { ...running, precedence: "urgent" });
}

/**
 * A looping animation of some seconds of `input`, from `offsetSeconds` after its first frame, without audio. Throws
 * MediaError.
 */
export function animated(
  source: ImageSource,
  request: {
    offsetSeconds: number;
    seconds: number;
    width: number | null;
    height: number | null;
    fps: number;
    format: AnimatedFormat;
  },
  running: Running,
): Promise<Buffer> {
  const { offsetSeconds, seconds, width, height, fps, format } = request;
  const colors = source.kind === "video" ? [toImageColors(source.init, COLORS[format])] : [];
  const start = offsetSeconds.toFixed(3);
  const end = (offsetSeconds + seconds).toFixed(3);
  const filters = [
    `setpts=PTS-STARTPTS,trim=start=${start}:end=${end},setpts=PTS-STARTPTS,fps=${fps}`,
    ...fitted({ width, height, fit: "preserve" }),
    ...colors,
  ].join(",");
  // A palette computed from the video: the default one distorts skin tones.
  const colored = `${filters},split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=bayer:bayer_scale=4`;
  const graph = format === "gif" ? colored : filters;
  const limit = ["-fs", String(MAX_ANIMATION_BYTES), "-loop", "0", "-f", format];
  return draw(source, ["-vf", graph, ...ANIMATED[format], ...limit], { ...running, precedence: "background" });
}

function draw(
  { input, kind }: ImageSource,
  output: string[],
  { ffmpeg, ...running }: Running & { precedence: "urgent" | "background" },
): Promise<Buffer> {
  const args = [
    ...["-nostdin", "-hide_banner", "-loglevel", "error", "-protocol_whitelist", "pipe"],
    ...["-format_whitelist", READABLE[kind], "-max_streams", "64", "-max_pixels", String(MAX_PIXELS)],
    // Single-threaded: several images at once use all processors.
    ...["-threads", "1", "-i", "pipe:0", "-map", "0:v:0", "-map_metadata", "-1", "-threads", "1"],
    ...[...output, "pipe:1"],
  ];
  const timeLimitMs = running.precedence === "background" ? SUSPENDABLE_TIME_LIMIT_MS : TIME_LIMIT_MS;
  const limits = { timeLimitMs, memoryBytes: MEMORY_BYTES };
  return run(ffmpeg, { ...running, ...limits, input, args, viaSpawnServer: true });
}

/** The last frame at or before that time; beyond the end, the last frame. */
function frameAt(offsetSeconds: number): string {
  const at = offsetSeconds.toFixed(3);
  return `setpts=PTS-STARTPTS,tpad=stop_mode=clone:stop_duration=${(offsetSeconds + 1).toFixed(3)},fps=1000:start_time=${at}:round=up`;
}

const ROTATED = { 0: [], 90: ["transpose=clock"], 180: ["hflip", "vflip"], 270: ["transpose=cclock"] } as const;

const turned = ({ rotate, isFlippedHorizontally, isFlippedVertically }: Rotation): string[] => [
  ...ROTATED[rotate],
  ...(isFlippedHorizontally ? ["hflip"] : []),
  ...(isFlippedVertically ? ["vflip"] : []),
];

const SQUARE = "scale=w=trunc(iw*sar/2)*2:h=ih,setsar=1";

/** Commas inside an expression separate filters unless they are escaped. */
const atMost = (side: "iw" | "ih", pixels: number) => `min(${pixels}\\,${side})`;

function fitted({ width, height, fit }: Box): string[] {
  if (width === null && height === null) return [SQUARE];
  if (width === null || height === null) {
    const w = width === null ? "-2" : atMost("iw", width);
    const h = height === null ? "-2" : atMost("ih", height);
    return [SQUARE, `scale=w=${w}:h=${h}`];
  }
  const stretched = `scale=w=${atMost("iw", width)}:h=${atMost("ih", height)}`;
  const inside = `${stretched}:force_original_aspect_ratio=decrease:force_divisible_by=2`;
  switch (fit) {
    case "stretch":
      return [SQUARE, stretched, "setsar=1"];
    case "crop":
      return [
        SQUARE,
        `crop=w=min(iw\\,ih*${width}/${height}):h=min(ih\\,iw*${height}/${width})`,
        stretched,
        "setsar=1",
      ];
    case "pad":
      return [SQUARE, inside, `pad=w=${width}:h=${height}:x=(ow-iw)/2:y=(oh-ih)/2`, "setsar=1"];
    case "preserve":
      return [SQUARE, inside];
  }
}
