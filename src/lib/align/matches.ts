import type { Sliced } from "../time-slices.ts";
import type { TimedText } from "./cue.ts";
import { agree, type Tie } from "./tie.ts";
import type { WordRow, WordRows } from "./vocabulary.ts";

/** A cue of the track that says what the reference says somewhere. */
export type Match = {
  cue: number;
  /** How many of its words are paired. */
  words: number;
  /** Where they are said: a tie of its start or end if it has one, else estimated from how long the cues are. */
  at: Tie;
  /** Only where its first word begins a cue of the reference, too, or its last word ends one. */
  start: Tie | null;
  end: Tie | null;
};

/** Of a cue's words, so many must be found together. */
const COVERED = 0.5;
/** A word or two that were heard differently at the edge of a cue do not move the edge. */
const UNLIKE_AT_EDGE = 2;

/** One for each cue of the track whose words were mostly paired, in order. */
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
    const [first, last] = [cluster.first, cluster.last];
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
    // A reference that shows a line far longer is right about where it begins.
    const sameLength = start === null || end === null || agree(start, end);
    matches.push({ cue, words: cluster.words, at: start ?? end ?? estimated, start, end: sameLength ? end : null });
  }
  return matches;
}

const sameEdge = ([own, other]: readonly [number, number], words: number) =>
  own === other && own <= Math.min(UNLIKE_AT_EDGE, words - 1);

type Cluster = { first: number; last: number; words: number };

/** The most words of a cue that are paired with one stretch of the reference: a stray word far off is none of them. */
function longestCluster(paired: Int32Array, from: number, to: number): Cluster | null {
  let best: Cluster | null = null;
  let open: Cluster | null = null;
  for (let at = from; at < to; at++) {
    const place = paired[at] as number;
    if (place < 0) continue;
    if (open && place - (paired[open.last] as number) <= at - open.last + 3) {
      open.last = at;
      open.words++;
    } else open = { first: at, last: at, words: 1 };
    if (!best || open.words > best.words) best = open;
  }
  return best;
}

/** When a word is said if a cue's words share its time equally. */
function saidAt(cues: readonly TimedText[], row: WordRow, at: number): number {
  const cue = row.cueOf[at] as number;
  const { startMs, endMs } = cues[cue] as TimedText;
  const first = row.firstOf[cue] as number;
  return startMs + ((endMs - startMs) * (at - first)) / ((row.firstOf[cue + 1] as number) - first);
}
