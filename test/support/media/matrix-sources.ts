import { readFileSync, writeFileSync } from "node:fs";
import { ffmpeg } from "./sources.ts";

/** A source, and its expected result. */
export type Row = {
  name: string;
  /** Also the container. */
  file: string;
  /** Arguments of the system's ffmpeg before the file name, or a custom generator. */
  from: string[] | ((path: string) => Promise<void>);
  /** MediaError's code for a source that cannot be encoded. */
  fails?: "input_invalid" | "input_has_no_media";
  seconds?: number;
  /** Tolerance, where damage makes the result uncertain; the default is 0.1. */
  within?: number;
  /** The size of the top rendition; null for audio-only sources. */
  size?: string | null;
  rate?: number;
  /** Number of audio tracks; the default is 1. */
  sound?: number;
  languages?: (string | undefined)[];
  /**
   * Filters that convert the source to its expected appearance before the comparison; null when there is no fair
   * comparison.
   */
  seen?: string | null;
  /** False when the flash and the beep cannot be found in the remains of the source. */
  flash?: boolean;
  /** Played in a browser every time; the others on demand. */
  isPlayed?: boolean;
};

const FLASH = "between(t\\,1\\,1.4)";

/** A moving test pattern that is white from 1 s to 1.4 s. */
export const flashing = (size: string, rate: string, seconds: number, filters = "") => [
  ...["-f", "lavfi", "-i"],
  `testsrc2=s=${size}:r=${rate}:d=${seconds},drawbox=c=white:t=fill:enable='${FLASH}'${filters ? `,${filters}` : ""}`,
];

/** Silence, with a tone while the video is white. */
export const beeping = (seconds: number, rate = 48_000, channels = "mono") => [
  ...["-f", "lavfi", "-i"],
  `aevalsrc='0.7*sin(880*2*PI*t)*${FLASH}${"|0".repeat(channels === "5.1" ? 5 : 0)}':c=${channels}:s=${rate}:d=${seconds}`,
];

export const clip = (rate = "25", seconds = 2, size = "320x180") => [
  ...flashing(size, rate, seconds),
  ...beeping(seconds),
];
export const words = (text: string) => text.split(" ");
export const h264 = words("-c:v libx264 -preset ultrafast -crf 16 -pix_fmt yuv420p");
export const aac = words("-c:a aac");
export const mpeg2 = words("-c:v mpeg2video -q:v 2");
export const hevc = words("-c:v libx265 -preset ultrafast -x265-params log-level=error:crf=16");
export const vp9 = words("-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -b:v 3M");
export const av1 = words("-c:v libaom-av1 -cpu-used 8 -usage realtime -b:v 3M");

/** Creates a file first, then one derived from it. */
export const remade =
  (args: string[], first: string, ...then: string[]) =>
  async (path: string): Promise<void> => {
    await ffmpeg(...args, `${path}.${first}`);
    await ffmpeg("-i", `${path}.${first}`, ...then, path);
  };

export const damaged =
  (args: string[], damage: (whole: Buffer) => Buffer) =>
  async (path: string): Promise<void> => {
    await ffmpeg(...args, path);
    writeFileSync(path, damage(readFileSync(path)));
  };

export const half = (whole: Buffer) => whole.subarray(0, whole.length / 2);

/** Overwrites some bytes, the same ones every time. */
export const scratched = (whole: Buffer) => {
  for (let at = 20_000; at < whole.length; at += 9001) whole.fill(at & 255, at, at + 40);
  return whole;
};

export const tones = (...languages: string[]) => [
  ...languages.flatMap((_, index) => ["-map", `${index + 1}`]),
  ...languages.flatMap((language, index) => [`-metadata:s:a:${index}`, `language=${language}`]),
];
