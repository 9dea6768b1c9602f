import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ffmpeg, sound } from "./sources.ts";

/** Sources of HDR whose colors are known: patches from left to right, as code values of Y'CbCr in 10 bit and limited range. */
export type Code = readonly [y: number, cb: number, cr: number];
export type Format = "hdr10" | "hlg";

export const WIDTH = 640;
export const HEIGHT = 360;
/** Enough for what does not move. */
const FPS = 10;

/** Linear light of BT.2020 as a fraction of the peak of the format, which is 10,000 cd/m² for PQ and 1 for HLG. */
export type Linear = readonly [r: number, g: number, b: number];

/** ITU-R BT.2100, table 4: the signal for a luminance as a fraction of 10,000 cd/m². */
export function pqSignal(fraction: number): number {
  const m1 = 2610 / 16384;
  const m2 = (2523 / 4096) * 128;
  const c1 = 3424 / 4096;
  const c2 = (2413 / 4096) * 32;
  const c3 = (2392 / 4096) * 32;
  const power = fraction ** m1;
  return ((c1 + c2 * power) / (1 + c3 * power)) ** m2;
}

/** ITU-R BT.2100, table 5: the signal for scene light from 0 to 1. */
export function hlgSignal(scene: number): number {
  const a = 0.17883277;
  const b = 1 - 4 * a;
  const c = 0.5 - a * Math.log(4 * a);
  return scene <= 1 / 12 ? Math.sqrt(3 * scene) : a * Math.log(12 * scene - b) + c;
}

/** ITU-R BT.2100, tables 6 and 9. */
export function codeOf(linear: Linear, format: Format): Code {
  const [r, g, b] = linear.map(format === "hdr10" ? pqSignal : hlgSignal) as [number, number, number];
  const y = 0.2627 * r + 0.678 * g + 0.0593 * b;
  const cb = (b - y) / 1.8814;
  const cr = (r - y) / 1.4746;
  return [Math.round(876 * y + 64), Math.round(896 * cb + 512), Math.round(896 * cr + 512)];
}

export const TRANSFERS = { hdr10: "smpte2084", hlg: "arib-std-b67" } as const;
/** P3 in D65 of 1000 cd/m². */
export const DISPLAY = "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)";
export const LIGHT = "1000,400";

export const tagsOf = (format: Format, range = "tv") => [
  ...["-colorspace", "bt2020nc", "-color_primaries", "bt2020", "-color_trc", TRANSFERS[format], "-color_range", range],
];

type Options = {
  seconds: number;
  /** The length of the audio; none by default. */
  audioSeconds?: number;
  /** x265's parameters. */
  parameters?: string;
  encoder?: readonly string[];
  range?: string;
};

/** A video of the patches in `folder`, by default encoded without loss. */
export async function patchesSource(
  folder: string,
  name: string,
  format: Format,
  codes: readonly Code[],
  { seconds, audioSeconds, parameters, encoder, range }: Options,
): Promise<string> {
  const plane = (width: number, height: number, channel: 0 | 1 | 2) => {
    const line = Buffer.alloc(width * 2);
    for (let x = 0; x < width; x++)
      line.writeUInt16LE(codes[Math.floor((x * codes.length) / width)]?.[channel] ?? 0, x * 2);
    return Buffer.concat(Array(height).fill(line));
  };
  const raw = join(folder, `${name}.yuv`);
  const half = [WIDTH / 2, HEIGHT / 2] as const;
  writeFileSync(raw, Buffer.concat([plane(WIDTH, HEIGHT, 0), plane(...half, 1), plane(...half, 2)]));
  const path = join(folder, name);
  const lossless = `log-level=error:lossless=1${parameters ? `:${parameters}` : ""}`;
  const video = encoder ?? ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", lossless, "-tag:v", "hvc1"];
  await ffmpeg(
    ...["-stream_loop", String(seconds * FPS - 1), "-f", "rawvideo", "-pix_fmt", "yuv420p10le"],
    ...["-s", `${WIDTH}x${HEIGHT}`, "-r", String(FPS), "-i", raw, ...(audioSeconds ? sound(audioSeconds) : [])],
    // The frames themselves have no tags; those of the encoder are not to be taken for a conversion.
    ...[
      "-vf",
      `setparams=colorspace=bt2020nc:color_primaries=bt2020:color_trc=${TRANSFERS[format]}:range=${range ?? "tv"}`,
    ],
    ...[...video, ...tagsOf(format, range), path],
  );
  return path;
}

/** The mean code values of the middle of each of `count` patches of the frame at 1 s, with `bits` per sample. */
export async function patchesOf(
  path: string,
  count: number,
  { width, height, bits, at = 1 }: { width: number; height: number; bits: 8 | 10; at?: number },
): Promise<number[][]> {
  const format = bits === 8 ? "yuv420p" : "yuv420p10le";
  const bytes = bits === 8 ? 1 : 2;
  const raw = await ffmpeg("-ss", String(at), "-i", path, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", format, "-");
  const mean = (offset: number, wide: number, high: number, patch: number) => {
    const side = wide / count;
    let sum = 0;
    let values = 0;
    for (let y = Math.ceil(high / 4); y < (high * 3) / 4; y++)
      for (let x = Math.ceil((patch + 0.25) * side); x < (patch + 0.75) * side; x++) {
        const position = offset + (y * wide + x) * bytes;
        sum += bytes === 1 ? (raw[position] ?? Number.NaN) : raw.readUInt16LE(position);
        values++;
      }
    return sum / values;
  };
  const luma = width * height * bytes;
  const chroma = (width / 2) * (height / 2) * bytes;
  return Array.from({ length: count }, (_, patch) => [
    mean(0, width, height, patch),
    mean(luma, width / 2, height / 2, patch),
    mean(luma + chroma, width / 2, height / 2, patch),
  ]);
}

/** `box` as the last one of the first sample entry of an MP4 file whose index is at its end. */
export function withBox(file: Buffer, box: Buffer): Buffer {
  const path = ["moov", "trak", "mdia", "minf", "stbl", "stsd"];
  const sizes: number[] = [];
  let from = 0;
  let to = file.length;
  for (const type of path) {
    let at = from;
    while (file.toString("latin1", at + 4, at + 8) !== type) {
      const size = file.readUInt32BE(at);
      at += size === 1 ? Number(file.readBigUInt64BE(at + 8)) : size;
      if (at >= to) throw new Error(`no ${type}`);
    }
    sizes.push(at);
    [from, to] = [at + 8, at + file.readUInt32BE(at)];
  }
  const entry = from + 8;
  sizes.push(entry);
  const end = entry + file.readUInt32BE(entry);
  const result = Buffer.concat([file.subarray(0, end), box, file.subarray(end)]);
  for (const at of sizes) result.writeUInt32BE(result.readUInt32BE(at) + box.length, at);
  return result;
}
