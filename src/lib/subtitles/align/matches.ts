import type { Sliced } from "#lib/base";
import { agree, type Tie, type TimedText } from "./timing.ts";
import type { WordRow, WordRows } from "./vocabulary.ts";

/** A cue of the track whose words occur in the reference. */
export type Match = {
  cue: number;
  /** Number of its words that are paired. */
  words: number;
  /**
   * When they are said in the reference: from an anchor at its start or end if it has one, else estimated from the cue
   * durations.
   */
  at: Tie;
  /** Only where its first word also begins a cue of the reference, or its last word ends one. */
  start: Tie | null;
  end: Tie | null;
};

/** Share of a cue's words that must be paired in one stretch. */
const COVERED = 0.5;
/** A word or two that were recognized differently at the edge of a cue do not move the edge. */
const UNLIKE_AT_EDGE = 2;

/** One match for each cue of the track whose words are mostly paired, in order. */
export function* matchCues(
  cues: { track: readonly TimedText[]; reference: readonly TimedText[] },
  { track, reference }: WordRows,
  paired: Int32Array,
): Sliced<Match[]> {
  const matches: Match[] = [];
  for (let cue = 0; cue < cues.track.length; cue++) {
    if ((cue & 63) === 63) yield;
    const from = track.firstOf[cue] as number;
    const to = track.firstOf[cue + 1] as number;
    const cluster = longestCluster(paired, from, to);
    if (!cluster || cluster.words < COVERED * (to - from)) continue;
    const first = cluster.first;
    const last = cluster.last;
    const bFirst = paired[first] as number;
    const bLast = paired[last] as number;
    const own = cues.track[cue] as TimedText;
    const startCue = reference.cueOf[bFirst] as number;
    const endCue = reference.cueOf[bLast] as number;
    const leads = [first - from, bFirst - (reference.firstOf[startCue] as number)] as const;
    const trails = [to - 1 - last, (reference.firstOf[endCue + 1] as number) - 1 - bLast] as const;
    const start = sameEdge(leads, cluster.words)
      ? { from: own.startMs, to: (cues.reference[startCue] as TimedText).startMs }
      : null;
    const end = sameEdge(trails, cluster.words)
      ? { from: own.endMs, to: (cues.reference[endCue] as TimedText).endMs }
      : null;
    const estimated = { from: saidAt(cues.track, track, first), to: saidAt(cues.reference, reference, bFirst) };
    // When the reference shows a line for far longer, only its start is reliable.
    const sameLength = start === null || end === null || agree(start, end);
    matches.push({ cue, words: cluster.words, at: start ?? end ?? estimated, start, end: sameLength ? end : null });
  }
  return matches;
}

const sameEdge = ([own, other]: readonly [number, number], words: number) =>
  own === other && own <= Math.min(UNLIKE_AT_EDGE, words - 1);

type Cluster = { first: number; last: number; words: number };

/**
 * The largest set of a cue's words that are paired with one stretch of the reference; distant stray words are excluded.
 */
function longestCluster(paired: Int32Array, from: number, to: number): Cluster | null {
  let best: Cluster | null = null;
  let open: Cluster | null = null;
  for (let at = from; at < to; at++) {
    const index = paired[at] as number;
    if (index < 0) continue;
    if (open && index - (paired[open.last] as number) <= at - open.last + 3) {
      open.last = at;
      open.words++;
    } else open = { first: at, last: at, words: 1 };
    if (!best || open.words > best.words) best = open;
  }
  return best;
}

/** The time of a word, assuming that the words share the cue's duration equally. */
function saidAt(cues: readonly TimedText[], row: WordRow, at: number): number {
  const cue = row.cueOf[at] as number;
  const { startMs, endMs } = cues[cue] as TimedText;
  const first = row.firstOf[cue] as number;
  return startMs + ((endMs - startMs) * (at - first)) / ((row.firstOf[cue + 1] as number) - first);
}
