import { OVERLAP_MS } from "./parts.ts";
import { normalized, type TimedWord } from "./words.ts";

/** Two parts time a word that both heard at most so differently. */
export const SAME_MS = 600;
/** As far apart, the same word is taken for a repetition that was said. */
const REPEATED_MS = 1500;
/** Words that overlap by less are two words. */
const TOUCHING_MS = 50;
/** More words are not said around a cut: then an engine repeats itself, and only times decide. */
const MOST_WORDS = 100;

const middle = (word: TimedWord) => (word.startMs + word.endMs) / 2;

/**
 * The words of two parts that overlap around `cutMs`. Where both heard the same words, the second continues after them;
 * else the middle of a word decides, and what only one of them heard stays. `sameMs`: how differently they time a word.
 */
export function joined<W extends TimedWord>(
  first: readonly W[],
  second: readonly W[],
  cutMs: number,
  sameMs = SAME_MS,
): W[] {
  const reach = OVERLAP_MS + SAME_MS;
  const isNear = (word: TimedWord) => Math.abs(middle(word) - cutMs) <= reach;
  const firstZone = first.findIndex((word) => isNear(word));
  const zoneStart = firstZone < 0 ? first.length : firstZone;
  const tail = first.slice(zoneStart);
  const zoneEnd = second.findLastIndex((word) => isNear(word)) + 1;
  const head = second.slice(0, zoneEnd);
  if (tail.length > MOST_WORDS || head.length > MOST_WORDS)
    return [...first.filter((word) => middle(word) < cutMs), ...second.filter((word) => middle(word) >= cutMs)];
  const common = commonRun(tail, head, { cutMs, sameMs });
  if (common)
    return [
      ...first.slice(0, zoneStart + common.inFirst + common.length),
      ...second.slice(common.inSecond + common.length),
    ];
  return [...first.slice(0, zoneStart), ...merged(tail, head, cutMs), ...second.slice(zoneEnd)];
}

type Run = { inFirst: number; inSecond: number; length: number };

/** The longest run of the same words at the same time; of equal ones the nearest to the cut. */
function commonRun(
  tail: readonly TimedWord[],
  head: readonly TimedWord[],
  { cutMs, sameMs }: { cutMs: number; sameMs: number },
): Run | null {
  let best: (Run & { distance: number }) | null = null;
  for (let inFirst = 0; inFirst < tail.length; inFirst++)
    for (let inSecond = 0; inSecond < head.length; inSecond++) {
      let length = 0;
      while (isSame(tail[inFirst + length], head[inSecond + length], sameMs)) length++;
      if (length === 0) continue;
      const distance = Math.abs(middle(tail[inFirst] as TimedWord) - cutMs);
      if (!best || length > best.length || (length === best.length && distance < best.distance))
        best = { inFirst, inSecond, length, distance };
    }
  return best;
}

const isSame = (one: TimedWord | undefined, other: TimedWord | undefined, sameMs: number): boolean =>
  one !== undefined && other !== undefined && Math.abs(one.startMs - other.startMs) <= sameMs && sameText(one, other);

function sameText(one: TimedWord, other: TimedWord): boolean {
  const text = normalized(one.text);
  const others = normalized(other.text);
  return text !== "" && text === others;
}

function merged<W extends TimedWord>(tail: readonly W[], head: readonly W[], cutMs: number): W[] {
  const kept = [...tail.filter((word) => middle(word) < cutMs), ...head.filter((word) => middle(word) >= cutMs)];
  const dropped = [...tail.filter((word) => middle(word) >= cutMs), ...head.filter((word) => middle(word) < cutMs)];
  for (const word of dropped) {
    const isHeard = kept.some(
      (other) =>
        Math.min(word.endMs, other.endMs) - Math.max(word.startMs, other.startMs) > TOUCHING_MS ||
        (sameText(word, other) && Math.abs(word.startMs - other.startMs) <= REPEATED_MS),
    );
    if (!isHeard) kept.push(word);
  }
  return kept.sort((one, other) => one.startMs - other.startMs);
}
