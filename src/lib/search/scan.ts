import { beginsWordAt, endsWordAt, folded, isSpaceless, wordsIn } from "./fold.ts";
import { type Line, lineOf } from "./sections.ts";

/** A line that contains words of a query. */
export type Hit = {
  line: Line;
  /** Indexes of the words that it contains. */
  words: ReadonlySet<number>;
  /** How many of them are whole words, and not only beginnings. */
  whole: number;
};

/** Hits of one word in one section that are looked at. */
const MAX_HITS = 200;

/**
 * The lines of a section that contain words of a query, in their order. `written` is the text of `readText`, of which folding
 * keeps the line breaks: only lines with hits are read. Linear in the text for each word.
 * @example
 * hitsIn("The quay\nA lighthouse", queryWords("Lighthouse")).length // => 1
 */
export function hitsIn(written: string, words: readonly string[]): Hit[] {
  const text = folded(written);
  const found = new Map<number, { words: Set<number>; whole: number }>();
  for (const [index, word] of words.entries()) {
    const anywhere = isSpaceless(word);
    let hits = 0;
    let lineNumber = 0;
    let lineAt = 0;
    for (let at = text.indexOf(word); at >= 0 && hits < MAX_HITS; ) {
      for (let end = text.indexOf("\n", lineAt); end >= 0 && end < at; end = text.indexOf("\n", lineAt)) {
        lineNumber++;
        lineAt = end + 1;
      }
      // Not in the kind and time of the line. A single letter is a whole word.
      const isText = at > text.indexOf(" ", lineAt);
      const whole = anywhere || endsWordAt(text, at + word.length);
      const isHit = isText && (anywhere || (beginsWordAt(text, at) && (whole || word.length > 1)));
      if (!isHit) {
        at = text.indexOf(word, at + word.length);
        continue;
      }
      hits++;
      const hit = found.get(lineNumber) ?? { words: new Set<number>(), whole: 0 };
      if (whole && !hit.words.has(index)) hit.whole++;
      hit.words.add(index);
      found.set(lineNumber, hit);
      // Further hits in the line change nothing.
      const end = text.indexOf("\n", at);
      at = end < 0 ? -1 : text.indexOf(word, end);
    }
  }
  return readLines(written, found);
}

function readLines(written: string, found: ReadonlyMap<number, { words: Set<number>; whole: number }>): Hit[] {
  const hits: Hit[] = [];
  let lineAt = 0;
  let current = 0;
  for (const [number, hit] of [...found].sort(([a], [b]) => a - b)) {
    for (; current < number; current++) lineAt = written.indexOf("\n", lineAt) + 1;
    const end = written.indexOf("\n", lineAt);
    hits.push({ line: lineOf(written.slice(lineAt, end < 0 ? written.length : end)), ...hit });
  }
  return hits;
}

const EXCERPT = 200;
const BEFORE = 60;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;

/**
 * A part of a long text around the first word that begins with one of a query.
 * @example
 * excerptOf("A lighthouse", ["lighthouse"]) // => "A lighthouse"
 */
export function excerptOf(text: string, words: readonly string[]): string {
  if (text.length <= EXCERPT) return text;
  let at = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const parts = wordsIn(folded(word));
    if (
      !words.some((wanted) =>
        parts.some((part) => (isSpaceless(wanted) ? part.includes(wanted) : part.startsWith(wanted))),
      )
    )
      continue;
    at = index;
    break;
  }
  const space = at > BEFORE ? text.indexOf(" ", at - BEFORE) : -1;
  const from = at <= BEFORE ? 0 : space >= 0 && space < at ? space + 1 : at;
  const cut = text.slice(from, from + EXCERPT).replace(/[\ud800-\udbff]$/, "");
  return `${from > 0 ? "…" : ""}${cut}${from + EXCERPT < text.length ? "…" : ""}`;
}
