import type { FileHandle } from "node:fs/promises";
import { runToEnd, type Sliced } from "#lib/base";
import { BYTES_PER_SECOND, type Samples } from "../wav.ts";

/**
 * Where something is heard, by energy alone. It finds pauses to cut at and silence to leave out; that needs no model of
 * speech, because music and noise that it takes for speech only cost time. So every doubt counts as activity: a word that is
 * left out here is lost.
 */

export const HOP_MS = 50;
const HOP_BYTES = (BYTES_PER_SECOND * HOP_MS) / 1000;
const HOP_SAMPLES = HOP_BYTES / 2;
const READ_BYTES = HOP_BYTES * 200;
const SILENT_DB = -96;

/** Below the first a level is always silence, above the second always activity. In between, the noise floor decides. */
const LOW_DB = -60;
const HIGH_DB = -35;
const LEAST_DB = -80;
/** Distance of quiet speech to the loud parts of a recording, and of speech to noise. */
const RANGE_DB = 30;
const OVER_FLOOR_DB = 6;
/** The noise floor is the level that a tenth of the half minutes around a hop does not exceed. */
const FLOOR_SHARE = 0.1;
const FLOOR_HOPS = 600;

/** A stretch of activity, in milliseconds. */
export type Stretch = { startMs: number; endMs: number };

/** The levels of all hops in dBFS: 1.7 MB for 24 hours. Reads the file in pieces. */
export async function levelsOf(file: FileHandle, { from, to }: Samples): Promise<Int8Array> {
  const levels = new Int8Array(Math.ceil((to - from) / HOP_BYTES));
  const samples = new Int16Array(READ_BYTES / 2);
  const buffer = new Uint8Array(samples.buffer);
  let hop = 0;
  for (let at = from; at < to; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(READ_BYTES, to - at), at);
    if (bytesRead === 0) break;
    const count = bytesRead >> 1;
    for (let first = 0; first < count; first += HOP_SAMPLES)
      levels[hop++] = level(samples.subarray(first, Math.min(count, first + HOP_SAMPLES)));
    at += bytesRead;
  }
  return levels.subarray(0, hop);
}

function level(samples: Int16Array): number {
  let energy = 0;
  for (const sample of samples) energy += sample * sample;
  if (energy === 0) return SILENT_DB;
  return Math.max(SILENT_DB, Math.round(10 * Math.log10(energy / samples.length / 2 ** 30)));
}

/** The level that `share` of the counted hops do not exceed. */
function quantile(counts: Uint32Array, total: number, share: number): number {
  let rest = Math.floor(total * share);
  for (let index = 0; index < counts.length; index++) {
    rest -= counts[index] as number;
    if (rest < 0) return index + SILENT_DB;
  }
  return 0;
}

const HOPS_PER_SLICE = 10_000;

/** Whether something is heard in each hop. */
export const activityOf = (levels: Int8Array): Uint8Array => runToEnd(findingActivity(levels));

/** The same in slices: a day of audio takes half a second. */
export function* findingActivity(levels: Int8Array): Sliced<Uint8Array> {
  const all = new Uint32Array(-SILENT_DB + 1);
  for (const level of levels) all[level - SILENT_DB] = (all[level - SILENT_DB] as number) + 1;
  const low = Math.max(LEAST_DB, Math.min(LOW_DB, quantile(all, levels.length, 0.95) - RANGE_DB));
  const active = new Uint8Array(levels.length);
  const around = new Uint32Array(-SILENT_DB + 1);
  let first = 0;
  let end = 0;
  const count = (hop: number, change: number) => {
    const index = (levels[hop] as number) - SILENT_DB;
    around[index] = (around[index] as number) + change;
  };
  for (let hop = 0; hop < levels.length; hop++) {
    if (hop % HOPS_PER_SLICE === 0) yield;
    while (end < Math.min(levels.length, hop + FLOOR_HOPS)) count(end++, 1);
    while (first < hop - FLOOR_HOPS) count(first++, -1);
    const floor = quantile(around, end - first, FLOOR_SHARE);
    active[hop] = (levels[hop] as number) > Math.min(HIGH_DB, Math.max(low, floor + OVER_FLOOR_DB)) ? 1 : 0;
  }
  return active;
}

/** Quiet consonants and the ends of words around what is heard. */
const MARGIN_MS = 300;
/** A click. */
const LEAST_MS = 100;

/** Stretches of activity with their margins; those that touch are one. */
export function stretchesOf(active: Uint8Array): Stretch[] {
  const stretches: Stretch[] = [];
  const endOfAll = active.length * HOP_MS;
  for (let hop = 0; hop < active.length; ) {
    if (!active[hop]) {
      hop++;
      continue;
    }
    const start = hop;
    while (hop < active.length && active[hop]) hop++;
    if ((hop - start) * HOP_MS < LEAST_MS) continue;
    const startMs = Math.max(0, start * HOP_MS - MARGIN_MS);
    const endMs = Math.min(endOfAll, hop * HOP_MS + MARGIN_MS);
    const last = stretches.at(-1);
    if (last && startMs <= last.endMs) last.endMs = endMs;
    else stretches.push({ startMs, endMs });
  }
  return stretches;
}
