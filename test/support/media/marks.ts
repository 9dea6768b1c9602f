import { readFileSync } from "node:fs";
import { join } from "node:path";
import { emptyFolder } from "../folder.ts";
import { ffmpeg } from "./sources.ts";

/** Test material with flashes and beeps at times whose distances all differ: what is moved fits nowhere else. */

const MARKS = [1.48, 3.12, 5.68, 9.2, 10.88];
const LENGTH = 0.12;

const isMark = (from: number) => MARKS.map((at) => `between(t,${at - from},${at - from + LENGTH})`).join("+");

/** The marks of a part of the material that begins at `from` and ends before `to`, on its own clock. */
export const marksIn = (from: number, to: number): number[] =>
  MARKS.filter((at) => at >= from && at < to).map((at) => at - from);

/** An input of ffmpeg: video of 12 s, black between the flashes. */
export const marked = (size: string, rate: number, seconds = 12): string[] => [
  ...["-f", "lavfi", "-i"],
  `color=black:s=${size}:r=${rate}:d=${seconds},drawbox=enable='${isMark(0)}':color=white:t=fill`,
];

/** An input of ffmpeg: the audio from `from` on. */
export const markedAudio = (from: number, seconds: number): string[] => [
  ...["-f", "lavfi", "-i"],
  `aevalsrc='if(${isMark(from)},0.8*sin(2*PI*1000*t),0)|if(${isMark(from)},0.8*sin(2*PI*1000*t),0)':s=48000:d=${seconds}`,
];

/** A file with the audio of the material from `from` on. */
export async function markedFile(from: number, seconds: number): Promise<Buffer> {
  const path = join(emptyFolder(), "dub.wav");
  await ffmpeg(...markedAudio(from, seconds), path);
  return readFileSync(path);
}

/** Lips are out of sync beyond it, in seconds. */
const TOLERATED = 0.075;

/** Whether marks are found where they are expected, and nowhere else. */
export const areNear = (found: readonly number[], expected: readonly number[]): boolean =>
  found.length === expected.length && found.every((at, index) => Math.abs(at - (expected[index] ?? 0)) < TOLERATED);
