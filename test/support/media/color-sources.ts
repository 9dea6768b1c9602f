import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ffmpeg } from "./sources.ts";

/** Sources whose patches, from left to right, have known values of R'G'B', whatever their primaries are. */
export const PATCHES = [
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
  [255, 255, 255],
  [128, 128, 128],
  [255, 255, 0],
  [220, 170, 140],
  [30, 60, 30],
] as const;

export const SD = { width: 512, height: 320 };
export const HD = { width: 1280, height: 720 };
const FRAMES = 50;

export type ColorSource = {
  size?: { width: number; height: number };
  /** ffmpeg's names; "unknown" is not stated. */
  tags: { matrix: string; primaries: string; transfer: string };
  /** In which the samples are stored; that of the tags by default. */
  stored?: string;
  isFull?: boolean;
  format?: string;
  encoder?: readonly string[];
  /** The ending of the file's name. */
  extension?: string;
  /** In degrees: the display matrix. */
  rotation?: number;
};

const X264 = ["-c:v", "libx264", "-preset", "veryfast", "-crf", "4"];
export const x264 = (profile: string) => [...X264, "-profile:v", profile];
/** Names of the matrices that `scale` and ffmpeg's options call differently. */
const SCALE_NAMES: Record<string, string> = { bt2020nc: "bt2020" };

/** Writes 2 s of the patches to `folder`. */
export async function colorSource(folder: string, name: string, source: ColorSource): Promise<string> {
  const { size = SD, tags, isFull = false, format = "yuv420p", encoder = X264, extension = "mp4", rotation } = source;
  const { width, height } = size;
  const line = Buffer.alloc(width * 3);
  for (let x = 0; x < width; x++) line.set(PATCHES[Math.floor((x * PATCHES.length) / width)] ?? [], x * 3);
  const raw = join(folder, `${name}.rgb`);
  writeFileSync(raw, Buffer.concat(Array(height).fill(line)));
  const guessed = height < 720 ? "smpte170m" : "bt709";
  const stored = source.stored ?? (tags.matrix === "unknown" ? guessed : tags.matrix);
  const isRgb = /rgb|gbr/.test(format);
  const range = isFull || isRgb ? "pc" : "tv";
  const matrix = `scale=out_color_matrix=${SCALE_NAMES[stored] ?? stored}:out_range=${range}:flags=accurate_rnd+full_chroma_int`;
  const isTagged = Object.values(tags).some((one) => one !== "unknown");
  const stating = isTagged || isFull ? range : "unknown";
  const { matrix: colorspace, primaries, transfer } = tags;
  const states = `colorspace=${isRgb ? "gbr" : colorspace}:color_primaries=${primaries}:color_trc=${transfer}:range=${stating}`;
  const path = join(folder, `${name}.${extension}`);
  const unturned = rotation === undefined ? path : join(folder, `${name}-unturned.mp4`);
  await ffmpeg(
    ...["-stream_loop", String(FRAMES - 1), "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", `${width}x${height}`],
    ...[
      "-r",
      "25",
      "-i",
      raw,
      "-vf",
      [...(isRgb ? [] : [matrix]), `format=${format}`, `setparams=${states}`].join(","),
    ],
    ...["-frames:v", String(FRAMES), "-colorspace", isRgb ? "rgb" : colorspace, "-color_primaries", primaries],
    ...["-color_trc", transfer, "-color_range", stating, ...encoder, unturned],
  );
  if (rotation !== undefined) await ffmpeg("-i", unturned, "-c", "copy", "-metadata:s:v:0", `rotate=${rotation}`, path);
  return path;
}
