import { HOP_MS, type Stretch } from "./activity.ts";

/**
 * Audio is recognized in parts that fit one window of Whisper (30 s), each on its own: the known loops of Whisper begin where it
 * continues from a wrong end of the window before, and a part that fails to be recognized spoils no other.
 */

/** `fromMs` to `toMs` is recognized; words between `startMs` and `endMs` belong to the part. */
export type Part = { startMs: number; endMs: number; fromMs: number; toMs: number };

/** Where audio is cut: a part has at least the first length, and at most the second, in ms. */
export type Lengths = { shortestMs: number; longestMs: number };
const WINDOW: Lengths = { shortestMs: 20_000, longestMs: 28_000 };
/** On each side of a cut, so that a word that is cut is whole in one of the parts. */
export const OVERLAP_MS = 1000;
/** A silence that is left out: Whisper invents text there. */
const SILENCE_MS = 8000;
/** Length of the quietest place, where there is no pause to cut at. */
const QUIET_HOPS = 6;

/** The parts of the stretches of activity, in order. `levels`: of the hops, to cut audio that has no pause. */
export function partsOf(stretches: readonly Stretch[], levels: Int8Array): Part[] {
  const parts: Part[] = [];
  for (const run of runsOf(stretches)) {
    const startMs = (run[0] as Stretch).startMs;
    const endMs = (run.at(-1) as Stretch).endMs;
    const cuts = cutsOf(run, levels, WINDOW);
    const bounds = [startMs, ...cuts, endMs];
    for (let index = 0; index + 1 < bounds.length; index++) {
      const from = bounds[index] as number;
      const to = bounds[index + 1] as number;
      const fromMs = index === 0 ? from : from - OVERLAP_MS;
      const toMs = index + 2 === bounds.length ? to : to + OVERLAP_MS;
      parts.push({ startMs: from, endMs: to, fromMs, toMs });
    }
  }
  return parts;
}

/** Stretches with less than a long silence between them. */
function runsOf(stretches: readonly Stretch[]): Stretch[][] {
  const runs: Stretch[][] = [];
  for (const stretch of stretches) {
    const last = runs.at(-1)?.at(-1);
    if (last && stretch.startMs - last.endMs < SILENCE_MS) runs.at(-1)?.push(stretch);
    else runs.push([stretch]);
  }
  return runs;
}

/** Where stretches are cut, which are at least one: in the longest pause, else where it is quietest. */
export function cutsOf(run: readonly Stretch[], levels: Int8Array, { shortestMs, longestMs }: Lengths): number[] {
  const endMs = (run.at(-1) as Stretch).endMs;
  const cuts: number[] = [];
  let start = (run[0] as Stretch).startMs;
  let index = 0;
  while (endMs - start > longestMs) {
    const from = start + shortestMs;
    const to = start + longestMs;
    while (index + 1 < run.length && (run[index + 1] as Stretch).startMs <= from) index++;
    let best: { at: number; length: number } | null = null;
    for (let each = index; each + 1 < run.length; each++) {
      const before = (run[each] as Stretch).endMs;
      const after = (run[each + 1] as Stretch).startMs;
      if (before >= to) break;
      const at = Math.round((Math.max(before, from) + Math.min(after, to)) / 2);
      // The latest of equal ones, which keeps parts long.
      if (after > before && after - before >= (best?.length ?? 0)) best = { at, length: after - before };
    }
    const cut = best?.at ?? quietest(levels, from, to);
    cuts.push(cut);
    start = cut;
  }
  return cuts;
}

function quietest(levels: Int8Array, fromMs: number, toMs: number): number {
  let best = fromMs;
  let least = Number.POSITIVE_INFINITY;
  const last = Math.min(levels.length, toMs / HOP_MS) - QUIET_HOPS;
  for (let hop = Math.floor(fromMs / HOP_MS); hop <= last; hop++) {
    let sum = 0;
    for (let each = hop; each < hop + QUIET_HOPS; each++) sum += levels[each] as number;
    // The latest of equal ones here, too.
    if (sum > least) continue;
    least = sum;
    best = (hop + QUIET_HOPS / 2) * HOP_MS;
  }
  return best;
}
