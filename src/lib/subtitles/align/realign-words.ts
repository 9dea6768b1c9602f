import type { Sliced } from "#lib/base";
import { plainText } from "../cue-text/plain-text.ts";
import { HAS_SPACELESS, SPACELESS } from "../spaceless.ts";
import { pairWords } from "./pairing.ts";
import type { TimedText } from "./timing.ts";
import { wordRows } from "./vocabulary.ts";
import { wordsOf } from "./words.ts";

/** A word, and when it is said in ms. `confidence` is 0 to 1, absent where it is not known. */
export type TimedWord = { text: string; startMs: number; endMs: number; confidence?: number | undefined };

/** Words of a cue may begin before and end after it by this much: shaping moves cues a little. */
const SLACK_MS = 1500;
/** A text with fewer words of the one before is another text, and when it is said is not known. */
const LEAST_SHARE = 0.5;
const WORDS_PER_SLICE = 500;
const UNITS = new RegExp(String.raw`[${SPACELESS}]\P{L}*|[^${SPACELESS}]+`, "gu");

/**
 * The words of `cues` whose text was edited, with the times of the same words in `words`, which were said before. A word
 * that is new has the time between its neighbors, in proportion to its letters, and no confidence. Where a cue was
 * moved, its words move with it. Empty for another text. Nearly linear in the number of words.
 */
export function* realignedWords(cues: readonly TimedText[], words: readonly TimedWord[]): Sliced<TimedWord[]> {
  const shown: TimedText[] = [];
  const firstOf: number[] = [];
  for (const { text, startMs, endMs } of cues) {
    firstOf.push(shown.length);
    for (const unit of unitsOf(plainText(text))) shown.push({ text: unit, startMs, endMs });
    if (firstOf.length % WORDS_PER_SLICE === 0) yield;
  }
  firstOf.push(shown.length);
  const rows = yield* wordRows(shown, words);
  const paired = yield* pairWords(rows);
  const spans: (Span | null)[] = [];
  for (let unit = 0; unit < shown.length; unit++) {
    const from = rows.track.firstOf[unit] as number;
    const to = rows.track.firstOf[unit + 1] as number;
    const said = [...paired.subarray(from, to)].filter((at) => at >= 0).map((at) => rows.reference.cueOf[at] as number);
    const [first] = said;
    spans.push(first === undefined ? null : { first, last: said.at(-1) as number });
    if (unit % WORDS_PER_SLICE === 0) yield;
  }
  if (spans.filter((span) => span !== null).length < LEAST_SHARE * spans.length) return [];
  const result: TimedWord[] = [];
  for (const [index, cue] of cues.entries()) {
    const [from = 0, to = 0] = [firstOf[index], firstOf[index + 1]];
    result.push(...timedUnits(cue, shown.slice(from, to), { spans: spans.slice(from, to), words }));
    if (index % WORDS_PER_SLICE === 0) yield;
  }
  return result.sort((one, other) => one.startMs - other.startMs);
}

/** Indexes of the first and last word that a unit contains. */
type Span = { first: number; last: number };
type Spoken = { spans: readonly (Span | null)[]; words: readonly TimedWord[] };

/** What is timed: words, and single characters of scripts without spaces. */
const unitsOf = (text: string): string[] =>
  text.split(" ").flatMap((word) => (HAS_SPACELESS.test(word) ? (word.match(UNITS) ?? []) : word === "" ? [] : [word]));

function timedUnits(cue: TimedText, units: readonly TimedText[], { spans, words }: Spoken): TimedWord[] {
  const known = units.map((_, index): TimedWord | null => {
    const span = spans[index];
    if (!span) return null;
    const first = words[span.first] as TimedWord;
    const last = words[span.last] as TimedWord;
    return {
      text: "",
      startMs: first.startMs,
      endMs: Math.max(first.startMs, last.endMs),
      confidence: first.confidence,
    };
  });
  const shift = shiftOf(cue, known);
  const timed = units.map(({ text }, index): TimedWord => {
    const own = known[index];
    if (!own) return { text, startMs: -1, endMs: -1 };
    const isSame = spans[index]?.first === spans[index]?.last && isEqual(text, words[spans[index]?.first as number]);
    const confidence = isSame ? own.confidence : undefined;
    return {
      text,
      startMs: own.startMs + shift,
      endMs: own.endMs + shift,
      ...(confidence !== undefined && { confidence }),
    };
  });
  fillGaps(cue, timed);
  return joined(timed, spans);
}

const isEqual = (text: string, word: TimedWord | undefined) =>
  word !== undefined && wordsOf(text).join(" ") === wordsOf(word.text).join(" ");

/**
 * How far words are from a cue that was moved; 0 where at least half of them are said in it: others were moved into it from
 * a neighbor, and keep their times.
 */
function shiftOf({ startMs, endMs }: TimedText, known: readonly (TimedWord | null)[]): number {
  const said = known.filter((word) => word !== null);
  const outside = said.filter((word) => word.startMs < startMs - SLACK_MS || word.endMs > endMs + SLACK_MS);
  const [first] = said;
  return first && outside.length > said.length / 2 ? startMs - first.startMs : 0;
}

/** Gives units without a time (-1) that between their neighbors, or the edges of the cue. */
function fillGaps({ startMs, endMs }: TimedText, timed: TimedWord[]): void {
  for (let from = 0; from < timed.length; from++) {
    if ((timed[from] as TimedWord).startMs >= 0) continue;
    let to = from;
    while (to < timed.length && (timed[to] as TimedWord).startMs < 0) to++;
    const begin = Math.max(0, timed[from - 1]?.endMs ?? startMs);
    const end = Math.max(begin, timed[to]?.startMs ?? Math.max(endMs, begin));
    const letters = timed.slice(from, to).reduce((sum, { text }) => sum + text.length, 0);
    let done = 0;
    for (let at = from; at < to; at++) {
      const word = timed[at] as TimedWord;
      word.startMs = Math.round(begin + ((end - begin) * done) / letters);
      done += word.text.length;
      word.endMs = Math.round(begin + ((end - begin) * done) / letters);
    }
    from = to - 1;
  }
  for (const word of timed) word.startMs = Math.max(0, word.startMs);
  for (const word of timed) word.endMs = Math.max(word.startMs, word.endMs);
}

/** Units that are parts of the same word, which have one time, as that word again. */
function joined(timed: readonly TimedWord[], spans: readonly (Span | null)[]): TimedWord[] {
  const result: TimedWord[] = [];
  for (const [index, word] of timed.entries()) {
    const before = spans[index - 1];
    const own = spans[index];
    const previous = result.at(-1);
    const isPart = previous && own && before && own.first === before.first && own.last === before.last;
    if (isPart && HAS_SPACELESS.test(word.text)) previous.text += word.text;
    else result.push({ ...word });
  }
  return result;
}
