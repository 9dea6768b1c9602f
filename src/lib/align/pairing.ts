import type { Sliced } from "../time-slices.ts";
import type { WordRows } from "./vocabulary.ts";

/** A stretch of both rows, ends exclusive. */
type Region = { a0: number; a1: number; b0: number; b1: number; depth: number };

/** Texts made to have regions within regions stay cheap. */
const MAX_DEPTH = 12;

/**
 * For each word of the track the place of the same word in the reference, or -1; places only go up. A patience diff:
 * runs of words that occur once in both are paired where they keep their order, grown to both sides, and what lies
 * between is looked at in the same way with shorter runs. A line that is said often is paired by what stands around it.
 */
export function* pairWords({ track, reference, distinct }: WordRows): Sliced<Int32Array> {
  const a = track.grams[0];
  const b = reference.grams[0];
  const paired = new Int32Array(a.length).fill(-1);
  const counts = distinct.map((size) => ({
    inA: new Uint8Array(size),
    inB: new Uint8Array(size),
    at: new Int32Array(size),
  }));
  const regions: Region[] = [{ a0: 0, a1: a.length, b0: 0, b1: b.length, depth: 0 }];
  for (let region = regions.pop(); region; region = regions.pop()) {
    const { a0, a1, b0, b1, depth } = region;
    if (a0 >= a1 || b0 >= b1 || depth > MAX_DEPTH) continue;
    if (yield* sameWords(a, b, region)) {
      for (let at = a0; at < a1; at++) paired[at] = at - a0 + b0;
      continue;
    }
    let found: Int32Array = new Int32Array();
    for (let length = 2; length >= 0 && found.length === 0; length--) {
      const grams = [track.grams[length], reference.grams[length]] as [Int32Array, Int32Array];
      found = yield* uniquePairs(grams, region, counts[length] as Counts);
    }
    let doneA = a0;
    let doneB = b0;
    for (let k = 0; k < found.length; k += 2) {
      let x = found[k] as number;
      let y = found[k + 1] as number;
      // The one before has grown over it.
      if (x < doneA || y < doneB) continue;
      while (x > doneA && y > doneB && a[x - 1] === b[y - 1]) {
        x--;
        y--;
      }
      regions.push({ a0: doneA, a1: x, b0: doneB, b1: y, depth: depth + 1 });
      while (x < a1 && y < b1 && a[x] === b[y]) paired[x++] = y++;
      doneA = x;
      doneB = y;
      if ((k & 127) === 0) yield;
    }
    if (found.length > 0) regions.push({ a0: doneA, a1, b0: doneB, b1, depth: depth + 1 });
    yield;
  }
  return paired;
}

function* sameWords(a: Int32Array, b: Int32Array, { a0, a1, b0, b1 }: Region): Sliced<boolean> {
  if (a1 - a0 !== b1 - b0) return false;
  for (let at = 0; at < a1 - a0; at++) {
    if (a[a0 + at] !== b[b0 + at]) return false;
    if ((at & 8191) === 8191) yield;
  }
  return true;
}

type Counts = { inA: Uint8Array; inB: Uint8Array; at: Int32Array };

/** Places [a, b, a, b …] of the runs that occur once on each side of the region, the most of them that keep their order. */
function* uniquePairs(
  [a, b]: [Int32Array, Int32Array],
  { a0, a1, b0, b1 }: Region,
  { inA, inB, at }: Counts,
): Sliced<Int32Array> {
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
  const places: number[] = [];
  for (let x = a0; x < a1; x++) {
    const gram = a[x] as number;
    if (gram >= 0 && inA[gram] === 1 && inB[gram] === 1) places.push(x, at[gram] as number);
    if ((x & 8191) === 0) yield;
  }
  // The tables are shared by all regions: what this one has counted is taken back.
  for (let x = a0; x < a1; x++) if ((a[x] as number) >= 0) inA[a[x] as number] = 0;
  for (let y = b0; y < b1; y++) if ((b[y] as number) >= 0) inB[b[y] as number] = 0;
  yield;
  return yield* longestRising(places);
}

/** Of pairs in rising order of their first place, the longest selection whose second places rise too. */
function* longestRising(places: readonly number[]): Sliced<Int32Array> {
  const count = places.length / 2;
  const before = new Int32Array(count).fill(-1);
  const ends: number[] = [];
  for (let k = 0; k < count; k++) {
    const y = places[2 * k + 1] as number;
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((places[2 * (ends[middle] as number) + 1] as number) < y) low = middle + 1;
      else high = middle;
    }
    if (low > 0) before[k] = ends[low - 1] as number;
    ends[low] = k;
    if ((k & 1023) === 0) yield;
  }
  const chosen = new Int32Array(ends.length * 2);
  let k = ends.at(-1) ?? -1;
  for (let slot = ends.length - 1; slot >= 0; slot--) {
    chosen[2 * slot] = places[2 * k] as number;
    chosen[2 * slot + 1] = places[2 * k + 1] as number;
    k = before[k] as number;
  }
  return chosen;
}
