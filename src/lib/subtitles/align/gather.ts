import type { Sliced } from "#lib/base";
import type { WordRows } from "./vocabulary.ts";

/**
 * Moves paired words next to the other words of their cue, in place. A word that occurs on both sides of a line that the
 * track lacks may be paired with the far one; the times of its cue would then come from that line. Of two runs of a
 * cue's words, the shorter gives its words to the longer where the same words are next to it.
 */
export function* gatherWords({ track, reference }: WordRows, paired: Int32Array): Sliced<void> {
  const a = track.grams[0];
  const b = reference.grams[0];
  for (let cue = 0; cue + 1 < track.firstOf.length; cue++) {
    const from = track.firstOf[cue] as number;
    const to = track.firstOf[cue + 1] as number;
    if (from === to) continue;
    gather(a, b, paired, { first: to - 1, end: from - 1, step: -1 });
    gather(a, b, paired, { first: from, end: to, step: 1 });
    if ((cue & 63) === 63) yield;
  }
}

/** Walks over one cue; words ahead of the walk move towards those that it has passed. */
function gather(
  a: Int32Array,
  b: Int32Array,
  paired: Int32Array,
  { first, end, step }: { first: number; end: number; step: 1 | -1 },
): void {
  // Words of the run that continues ahead, from each index.
  const ahead = new Int32Array(Math.abs(end - first));
  for (let at = end - step; at !== first - step; at -= step) {
    const continues = at + step !== end && isNext(paired, at, step);
    ahead[Math.abs(at - first)] = continues ? (ahead[Math.abs(at - first) + 1] as number) + 1 : 1;
  }
  let passed = 1;
  for (let at = first + step; at !== end; at += step) {
    if (isNext(paired, at - step, step)) {
      passed++;
      continue;
    }
    const own = paired[at] as number;
    const next = (paired[at - step] as number) + step;
    const isPaired = own >= 0 && (paired[at - step] as number) >= 0;
    if (isPaired && b[next] === a[at] && (ahead[Math.abs(at - first)] as number) < passed) {
      paired[at] = next;
      passed++;
    } else passed = 1;
  }
}

/** Whether the word after `at`, in the direction of `step`, is paired with the word after the one `at` is paired with. */
const isNext = (paired: Int32Array, at: number, step: 1 | -1): boolean =>
  (paired[at] as number) >= 0 && paired[at + step] === (paired[at] as number) + step;
