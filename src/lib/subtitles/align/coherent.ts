import type { Sliced } from "#lib/base";
import type { Match } from "./matches.ts";
import { agree } from "./timing.ts";

/** A jump must be supported by matches with more words than this. A stray match would need two of them. */
const JUMP_WORDS = 4;
/** One long line in the wrong position is still one line. */
const MAX_WORDS = 7;
/** How many matches back the previous match of a chain may be. */
const WINDOW = 64;
/** Fewer matches have no trend to deviate from. */
const FEW = 8;

/**
 * Selects the consistent matches: the chain with the most words whose times increase in both tracks, while its offset
 * changes slowly, or jumps where the following matches support it (a cut, an advertising break).
 */
export function* coherent(matches: readonly Match[]): Sliced<Match[]> {
  if (matches.length < FEW) return majority(matches);
  const score = new Float64Array(matches.length);
  const before = new Int32Array(matches.length).fill(-1);
  let last = 0;
  for (const [i, match] of matches.entries()) {
    let best = 0;
    for (let j = i - 1; j >= Math.max(0, i - WINDOW); j--) {
      const earlier = matches[j] as Match;
      if (earlier.at.to > match.at.to || earlier.at.from > match.at.from) continue;
      const reached = (score[j] as number) - (agree(earlier.at, match.at) ? 0 : JUMP_WORDS);
      if (reached <= best) continue;
      best = reached;
      before[i] = j;
    }
    score[i] = best + Math.min(match.words, MAX_WORDS);
    if ((score[i] as number) > (score[last] as number)) last = i;
    if ((i & 63) === 63) yield;
  }
  const chain: Match[] = [];
  for (let i = last; i >= 0; i = before[i] as number) chain.push(matches[i] as Match);
  return chain.reverse();
}

/** The matches that agree with the median, if most of them do. */
function majority(matches: readonly Match[]): Match[] {
  const middle = matches.toSorted((a, b) => a.at.to - a.at.from - (b.at.to - b.at.from))[matches.length >> 1];
  const agreeing = matches.filter((match) => middle && agree(middle.at, match.at));
  return agreeing.length > matches.length / 2 ? agreeing : [...matches];
}
