import type { Sliced } from "#lib/base";
import { coherent } from "./coherent.ts";
import { gatherWords } from "./gather.ts";
import { type Match, matchCues } from "./matches.ts";
import { pairWords } from "./pairing.ts";
import { remap, settled } from "./remap.ts";
import type { TimedText, Timing } from "./timing.ts";
import { wordRows } from "./vocabulary.ts";

/** With this many anchors the map is piecewise linear. */
const PIECEWISE_ANCHORS = 8;
const FEWEST_ANCHORS = 2;
const MIN_RATIO = 0.2;

export type Alignment = {
  /** Share of the cues with speech that match the reference at a plausible time: 0 to 1. */
  matchRatio: number;
  anchorCount: number;
  /** Null when the texts have too little in common. */
  moved: {
    strategy: "piecewise" | "global_offset";
    /** One for each cue of the track, in its order. */
    timings: Timing[];
    /** The smallest and the largest shift of a cue's start; positive is later. */
    minOffsetMs: number;
    maxOffsetMs: number;
  } | null;
};

/**
 * Computes times for the cues of `track` from when the same words are said in `reference`. The cost is nearly linear in
 * the number of words.
 */
export function* align(track: readonly TimedText[], reference: readonly TimedText[]): Sliced<Alignment> {
  const rows = yield* wordRows(track, reference);
  const paired = yield* pairWords(rows);
  yield* gatherWords(rows, paired);
  const matches = yield* coherent(yield* matchCues({ track, reference }, rows, paired));
  const spoken = track.filter((_, cue) => rows.track.firstOf[cue] !== rows.track.firstOf[cue + 1]).length;
  const matchRatio = spoken === 0 ? 0 : matches.length / spoken;
  const tied = matches.filter(({ start, end }) => start !== null || end !== null);
  // When the two tracks are segmented differently, only estimates are available.
  const anchors = tied.length >= FEWEST_ANCHORS ? tied : matches;
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
  let least = Number.POSITIVE_INFINITY;
  let greatest = Number.NEGATIVE_INFINITY;
  for (const shift of shifts) {
    least = Math.min(least, shift);
    greatest = Math.max(greatest, shift);
  }
  return { minOffsetMs: Math.round(least), maxOffsetMs: Math.round(greatest) };
}
