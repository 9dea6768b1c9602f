import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { runInSlices } from "#lib/base";
import { samplesOf } from "../wav.ts";
import { activityOf, findingActivity, HOP_MS, levelsOf, type Stretch, stretchesOf } from "../whisper/activity.ts";
import { cutsOf, type Lengths } from "../whisper/parts.ts";

/** A part of long audio, in milliseconds of it. */
type Part = { startMs: number; endMs: number };

/** With what is recognized before and after it, a part has at most a minute. */
const LENGTHS: Lengths = { shortestMs: 40_000, longestMs: 58_000 };

/**
 * Divides the audio of a WAV file (16 bits, 16 kHz, one channel) into parts for several workers: it is cut in the longest pauses, and
 * silence before and after them is left out. None where nothing is heard. Reads the file in pieces.
 */
export async function partsOfAudio(wavPath: string): Promise<Part[]> {
  await using file = await open(wavPath, constants.O_RDONLY | constants.O_NOFOLLOW);
  const levels = await levelsOf(file, await samplesOf(file));
  return dividedAt(stretchesOf(await runInSlices(findingActivity(levels))), levels);
}

/** The parts of stretches of activity. `levels`: of the hops, to cut audio that has no pause. */
export function dividedAt(stretches: readonly Stretch[], levels: Int8Array): Part[] {
  const first = stretches[0];
  const last = stretches.at(-1);
  if (!first || !last) return [];
  const bounds = [first.startMs, ...cutsOf(stretches, levels, LENGTHS), last.endMs];
  const parts: Part[] = [];
  let at = 0;
  for (const [index, from] of bounds.slice(0, -1).entries()) {
    const to = bounds[index + 1] as number;
    while (at < stretches.length && (stretches[at] as Stretch).endMs <= from) at++;
    const begins = stretches[at];
    if (!begins || begins.startMs >= to) continue;
    let ends = begins;
    for (let next = at; next < stretches.length && (stretches[next] as Stretch).startMs < to; next++)
      ends = stretches[next] as Stretch;
    parts.push({ startMs: Math.max(from, begins.startMs), endMs: Math.min(to, ends.endMs) });
  }
  return parts;
}

/** Whether anything is heard near a time of a WAV file, as `partsOfAudio` reads it. */
export async function activityIn(wavPath: string): Promise<(startMs: number, endMs: number) => boolean> {
  await using file = await open(wavPath, constants.O_RDONLY | constants.O_NOFOLLOW);
  const active = activityOf(await levelsOf(file, await samplesOf(file)));
  return (startMs, endMs) => {
    const from = Math.max(0, Math.floor((startMs - NEAR_MS) / HOP_MS));
    return active.subarray(from, Math.max(from + 1, Math.ceil((endMs + NEAR_MS) / HOP_MS))).includes(1);
  };
}

/** Engines time words less exactly. */
const NEAR_MS = 500;
