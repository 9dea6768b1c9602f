import { readFileSync, writeFileSync } from "node:fs";
import { ffmpeg } from "#test/support/media/sources.ts";

/** A source of the corpus, and what becomes of it. Each second of it begins with a flash and a beep, where it has them. */
export type Source = {
  name: string;
  /** Rows of one family are a line of the table in docs/encoding.md. */
  family: string;
  /** The ending of the file. */
  ending: string;
  /** Arguments of the system's ffmpeg before the name of the file, or what writes it. */
  from: string[] | ((path: string) => Promise<void>);
  /** What is expected; without it the source is refused with `error`. */
  seconds?: number;
  /** Tolerance of the duration; the default is 0.15. */
  within?: number;
  /** Display size of the top rendition; null: an audio asset. */
  size?: string | null;
  rate?: number;
  /** Audio tracks; the default is 1. */
  tracks?: number;
  /** Seconds that begin with a flash, a beep; by default all of both. */
  flashes?: number[];
  beeps?: number[];
  /** Greatest distance between a beep and its second; the default is 0.045. */
  apart?: number;
  /** By how much the tracks may end apart; the default is 0.12. */
  ends?: number;
  warnings?: string[];
  error?: string[];
};

export const SECONDS = 4;
export const SIZE = "160x90";
export const RATE = 25;

export const words = (text: string): string[] => text.split(" ").filter(Boolean);

const LENGTH = 0.12;
const flash = `drawbox=enable='lt(mod(t,1),${LENGTH})':color=white:t=fill`;

/** Inputs of ffmpeg: a dark video with motion that flashes, and silence with beeps. */
export const picture = ({
  size = SIZE,
  rate = RATE as number | string,
  seconds = SECONDS,
  more = "",
} = {}): string[] => [
  ...["-f", "lavfi", "-i", `testsrc2=s=${size}:r=${rate}:d=${seconds},lutyuv=y=val/4+16,${flash}${more && `,${more}`}`],
];
export const beeping = ({ rate = 48_000, layout = "stereo", seconds = SECONDS, hertz = 1000 } = {}): string[] => {
  const count = { mono: 1, stereo: 2, "2.1": 3, quad: 4, "5.0": 5, "5.1": 6, "7.1": 8 }[layout] ?? 2;
  const one = `if(lt(mod(t,1),${LENGTH}),0.8*sin(2*PI*${Math.min(hertz, rate / 4)}*t),0)`;
  return ["-f", "lavfi", "-i", `aevalsrc='${Array(count).fill(one).join("|")}':s=${rate}:c=${layout}:d=${seconds}`];
};
export const both = (video = {}, audio = {}): string[] => [...picture(video), ...beeping(audio)];

export const x264 = words("-c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 25");
export const aac = words("-c:a aac");
export const vp8 = words("-c:v libvpx -deadline realtime -cpu-used 8 -g 25");
export const opus = words("-c:a libopus");

/** Writes a file, and then one from it. */
export const remade =
  (args: string[], ending: string, ...then: string[]): Source["from"] =>
  async (path) => {
    await ffmpeg(...args, `${path}.${ending}`);
    await ffmpeg("-i", `${path}.${ending}`, ...then, path);
  };

/** The seconds of a source, from `first` to before `end`. */
export const from = (first: number, end: number): number[] =>
  Array.from({ length: end - first }, (_, index) => first + index);

/** Writes a file with these arguments and changes its bytes. */
export const edited =
  (args: string[], edit: (data: Buffer) => Buffer | Promise<Buffer>) =>
  async (path: string): Promise<void> => {
    const original = `${path}.original.${path.split(".").at(-1)}`;
    await ffmpeg(...args, original);
    writeFileSync(path, await edit(readFileSync(original)));
  };

/** Every box of a type, wherever its name is: `change` gets what follows the name. */
export const everywhere = (data: Buffer, type: string, change: (body: Buffer, at: number) => void): Buffer => {
  const copy = Buffer.from(data);
  let count = 0;
  for (let at = copy.indexOf(type, 0, "latin1"); at >= 0; at = copy.indexOf(type, at + 4, "latin1"))
    change(copy.subarray(at + 4), count++);
  return copy;
};
