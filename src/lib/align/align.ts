import type { Sliced } from "../time-slices.ts";
import { coherent } from "./coherent.ts";
import type { TimedText, Timing } from "./cue.ts";
import { type Match, matchCues } from "./matches.ts";
import { pairWords } from "./pairing.ts";
import { remap, settled } from "./remap.ts";
import { wordRows } from "./vocabulary.ts";

/** From so many anchors on the map is piecewise. */
const PIECEWISE_ANCHORS = 8;
const FEWEST_ANCHORS = 2;
const MIN_RATIO = 0.2;

export type Alignment = {
  /** Of the cues that say something, the share that was found in the reference at a plausible time: 0 to 1. */
  matchRatio: number;
  anchorCount: number;
  /** Null when the texts have too little in common. */
  moved: {
    strategy: "piecewise" | "global_offset";
    /** For each cue of the track, in its order. */
    timings: Timing[];
    /** The least and the greatest move of a cue's start; positive is later. */
    minOffsetMs: number;
    maxOffsetMs: number;
  } | null;
};

/** Times for the cues of `track` by what is said when in `reference`. Its work grows with the number of words, almost linearly. */
export function* align(track: readonly TimedText[], reference: readonly TimedText[]): Sliced<Alignment> {
  const rows = yield* wordRows(track, reference);
  const paired = yield* pairWords(rows);
  const found = yield* coherent(yield* matchCues({ track, reference }, rows, paired));
  const spoken = track.filter((_, cue) => rows.track.firstOf[cue] !== rows.track.firstOf[cue + 1]).length;
  const matchRatio = spoken === 0 ? 0 : found.length / spoken;
  const tied = found.filter(({ start, end }) => start !== null || end !== null);
  // Where the two are cut into cues quite differently, estimates are what there is.
  const anchors = tied.length >= FEWEST_ANCHORS ? tied : found;
  const anchorCount = anchors.length;
  if (anchorCount < FEWEST_ANCHORS || matchRatio < MIN_RATIO) return { matchRatio, anchorCount, moved: null };
  if (anchorCount >= PIECEWISE_ANCHORS) {
    const { timings, shifts } = yield* remap(track, anchors);
    return { matchRatio, anchorCount, moved: { strategy: "piecewise", timings, ...extremes(shifts) } };
  }
  const offset = Math.round(medianOffset(anchors));
  const shifted = track.map(({ startMs, endMs }) => ({ startMs: startMs + offset, endMs: endMs + offset }));
  const timings = yield* settled(track, shifted);
  return { matchRatio, anchorCount, moved: { strategy: "global_offset", timings, ...extremes([offset]) } };
}

function medianOffset(anchors: readonly Match[]): number {
  const offsets = anchors.map(({ at }) => at.to - at.from).sort((a, b) => a - b);
  const middle = offsets.length >> 1;
  const upper = offsets[middle] as number;
  return offsets.length % 2 === 1 ? upper : (upper + (offsets[middle - 1] as number)) / 2;
}

/** Not by spreading: a track may have more cues than a call can have arguments. */
function extremes(shifts: readonly number[]): { minOffsetMs: number; maxOffsetMs: number } {
  let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const shift of shifts) {
    least = Math.min(least, shift);
    greatest = Math.max(greatest, shift);
  }
  return { minOffsetMs: Math.round(least), maxOffsetMs: Math.round(greatest) };
}
