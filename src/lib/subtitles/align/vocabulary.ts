import type { Sliced } from "#lib/base";
import type { TimedText } from "./timing.ts";
import { wordsOf } from "./words.ts";

/**
 * A track as one sequence of words. `grams[k]` numbers the runs of 1, 2 and 4 words that begin at each index; equal
 * runs have equal numbers in both tracks, and -1 marks a run that would pass the end.
 */
export type WordRow = {
  grams: readonly [Int32Array, Int32Array, Int32Array];
  /** The number of a whole cue's text at the index of its first word, -1 at its other words. */
  lines: Int32Array;
  /** Index of the cue that contains each word. */
  cueOf: Int32Array;
  /** Index of each cue's first word, and the total number of words as the last entry. */
  firstOf: Int32Array;
};
export type WordRows = {
  track: WordRow;
  reference: WordRow;
  /** How many different numbers `grams` and `lines` have. */
  distinct: { grams: readonly [number, number, number]; lines: number };
};

const PAIR = 2 ** 26;
const CHARACTERS_A_STEP = 4000;
const CUE_COST = 40;

export function* wordRows(track: readonly TimedText[], reference: readonly TimedText[]): Sliced<WordRows> {
  const words = new Map<string, number>();
  const pairs = new Map<number, number>();
  const fours = new Map<number, number>();
  const texts = new Map<string, number>();
  const rowOf = function* (cues: readonly TimedText[]): Sliced<WordRow> {
    const numbers: number[] = [];
    const cueOf: number[] = [];
    const lines: number[] = [];
    const firstOf = new Int32Array(cues.length + 1);
    let read = 0;
    for (const [index, { text }] of cues.entries()) {
      firstOf[index] = numbers.length;
      const spoken = wordsOf(text);
      if (spoken.length > 0) lines[numbers.length] = numbered(texts, spoken.join(" "));
      for (const word of spoken) {
        numbers.push(numbered(words, word));
        cueOf.push(index);
      }
      read += CUE_COST + text.length;
      if (read < CHARACTERS_A_STEP) continue;
      read = 0;
      yield;
    }
    firstOf[cues.length] = numbers.length;
    const ones = Int32Array.from(numbers);
    yield;
    const twos = yield* runs(ones, 1, pairs);
    return {
      grams: [ones, twos, yield* runs(twos, 2, fours)],
      lines: Int32Array.from(ones, (_, at) => lines[at] ?? -1),
      cueOf: Int32Array.from(cueOf),
      firstOf,
    };
  };
  const rows = { track: yield* rowOf(track), reference: yield* rowOf(reference) };
  return { ...rows, distinct: { grams: [words.size, pairs.size, fours.size], lines: texts.size } };
}

function numbered<K>(known: Map<K, number>, key: K): number {
  const number = known.get(key);
  if (number !== undefined) return number;
  known.set(key, known.size);
  return known.size - 1;
}

/** Two runs that are `distance` apart form one of twice the length. */
function* runs(shorter: Int32Array, distance: number, known: Map<number, number>): Sliced<Int32Array> {
  const longer = new Int32Array(shorter.length).fill(-1);
  for (let at = 0; at + distance < shorter.length; at++) {
    const next = shorter[at + distance] as number;
    if (next >= 0) longer[at] = numbered(known, (shorter[at] as number) * PAIR + next);
    if ((at & 511) === 0) yield;
  }
  return longer;
}
