import type { Sliced } from "#lib/base";
import type { WordRows } from "./vocabulary.ts";

/** A stretch of both sequences, ends exclusive. */
type Region = { a0: number; a1: number; b0: number; b1: number; depth: number };

/** Bounds the recursion for texts that are built to nest regions. */
const MAX_DEPTH = 12;

/**
 * For each word of the track, the index of the same word in the reference, or -1; indexes only increase. A patience
 * diff: runs of words that occur once in both are paired where they keep their order and extended to both sides; the
 * regions between them are processed in the same way with shorter runs. A repeated line is paired through its context.
 * Where no run occurs once, a whole line may: one of equal words, or of words of which other lines consist too.
 */
export function* pairWords({ track, reference, distinct }: WordRows): Sliced<Int32Array> {
  const a = track.grams[0];
  const b = reference.grams[0];
  const paired = new Int32Array(a.length).fill(-1);
  const levels = [
    ...([2, 1, 0] as const).map((k) => levelOf([track.grams[k], reference.grams[k]], distinct.grams[k])),
    levelOf([track.lines, reference.lines], distinct.lines),
  ];
  const regions: Region[] = [{ a0: 0, a1: a.length, b0: 0, b1: b.length, depth: 0 }];
  for (let region = regions.pop(); region; region = regions.pop()) {
    const { a0, a1, b0, b1, depth } = region;
    if (a0 >= a1 || b0 >= b1 || depth > MAX_DEPTH) continue;
    if (yield* sameWords(a, b, region)) {
      for (let at = a0; at < a1; at++) paired[at] = at - a0 + b0;
      continue;
    }
    const runs = yield* longestUnique(levels, region);
    regions.push(...(yield* pairRuns(runs, { a, b, paired, region })));
    yield;
  }
  return paired;
}

/** The runs of the first level that has any. */
function* longestUnique(levels: readonly Level[], region: Region): Sliced<Int32Array> {
  for (const level of levels) {
    const runs = yield* uniquePairs(level, region);
    if (runs.length > 0) return runs;
  }
  return new Int32Array();
}

type Pairing = { a: Int32Array; b: Int32Array; paired: Int32Array; region: Region };

/** Pairs the words of runs, extended to both sides. Returns the regions that are left between them. */
function* pairRuns(runs: Int32Array, { a, b, paired, region }: Pairing): Sliced<Region[]> {
  const { a1, b1 } = region;
  const depth = region.depth + 1;
  const left: Region[] = [];
  let doneA = region.a0;
  let doneB = region.b0;
  for (let k = 0; k < runs.length; k += 2) {
    let x = runs[k] as number;
    let y = runs[k + 1] as number;
    // The previous run has been extended over it.
    if (x < doneA || y < doneB) continue;
    while (x > doneA && y > doneB && a[x - 1] === b[y - 1]) {
      x--;
      y--;
    }
    left.push({ a0: doneA, a1: x, b0: doneB, b1: y, depth });
    while (x < a1 && y < b1 && a[x] === b[y]) paired[x++] = y++;
    doneA = x;
    doneB = y;
    if ((k & 127) === 0) yield;
  }
  if (runs.length > 0) left.push({ a0: doneA, a1, b0: doneB, b1, depth });
  return left;
}

function* sameWords(a: Int32Array, b: Int32Array, { a0, a1, b0, b1 }: Region): Sliced<boolean> {
  if (a1 - a0 !== b1 - b0) return false;
  for (let at = 0; at < a1 - a0; at++) {
    if (a[a0 + at] !== b[b0 + at]) return false;
    if ((at & 8191) === 8191) yield;
  }
  return true;
}

/** Numbers of the runs that begin at each word of both sides, and tables of how often each number occurs, and where. */
type Level = { numbers: readonly [Int32Array, Int32Array]; inA: Uint8Array; inB: Uint8Array; at: Int32Array };

const levelOf = (numbers: Level["numbers"], distinct: number): Level => ({
  numbers,
  inA: new Uint8Array(distinct),
  inB: new Uint8Array(distinct),
  at: new Int32Array(distinct),
});

/**
 * Indexes [a, b, a, b …] of the runs that occur once on each side of the region: the largest set that keeps their
 * order.
 */
function* uniquePairs({ numbers: [a, b], inA, inB, at }: Level, { a0, a1, b0, b1 }: Region): Sliced<Int32Array> {
  for (let x = a0; x < a1; x++) {
    const gram = a[x] as number;
    if (gram >= 0 && (inA[gram] as number) < 2) inA[gram] = (inA[gram] as number) + 1;
    if ((x & 8191) === 0) yield;
  }
  for (let y = b0; y < b1; y++) {
    const gram = b[y] as number;
    if (gram >= 0 && (inB[gram] as number) < 2) inB[gram] = (inB[gram] as number) + 1;
    if (gram >= 0) at[gram] = y;
    if ((y & 8191) === 0) yield;
  }
  const indexes: number[] = [];
  for (let x = a0; x < a1; x++) {
    const gram = a[x] as number;
    if (gram >= 0 && inA[gram] === 1 && inB[gram] === 1) indexes.push(x, at[gram] as number);
    if ((x & 8191) === 0) yield;
  }
  // The tables are shared by all regions, so the counts of this one are reset.
  for (let x = a0; x < a1; x++) if ((a[x] as number) >= 0) inA[a[x] as number] = 0;
  for (let y = b0; y < b1; y++) if ((b[y] as number) >= 0) inB[b[y] as number] = 0;
  yield;
  return yield* longestRising(indexes);
}

/** Finds the longest subsequence of pairs, sorted by their first index, in which the second indexes increase too. */
function* longestRising(indexes: readonly number[]): Sliced<Int32Array> {
  const count = indexes.length / 2;
  const before = new Int32Array(count).fill(-1);
  const ends: number[] = [];
  for (let k = 0; k < count; k++) {
    const y = indexes[2 * k + 1] as number;
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((indexes[2 * (ends[middle] as number) + 1] as number) < y) low = middle + 1;
      else high = middle;
    }
    if (low > 0) before[k] = ends[low - 1] as number;
    ends[low] = k;
    if ((k & 1023) === 0) yield;
  }
  const chosen = new Int32Array(ends.length * 2);
  let k = ends.at(-1) ?? -1;
  for (let slot = ends.length - 1; slot >= 0; slot--) {
    chosen[2 * slot] = indexes[2 * k] as number;
    chosen[2 * slot + 1] = indexes[2 * k + 1] as number;
    k = before[k] as number;
  }
  return chosen;
}
