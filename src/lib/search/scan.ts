import { folded, isLetterAt, isSpaceless, wordsIn } from "./fold.ts";
import type { Line } from "./sections.ts";

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

/** The lines of a section that contain words of a query, in their order. Linear in the text for each word. */
export function hitsIn(lines: readonly Line[], words: readonly string[]): Hit[] {
  const text = folded(lines.map((line) => line.text).join("\n"));
  const found = new Map<number, { words: Set<number>; whole: number }>();
  for (const [index, word] of words.entries()) {
    const anywhere = isSpaceless(word);
    // A single letter is a whole word.
    const onlyWhole = !anywhere && word.length === 1;
    let hits = 0;
    let lineNumber = 0;
    let lineAt = 0;
    for (let at = text.indexOf(word); at >= 0 && hits < MAX_HITS; ) {
      const whole = !isLetterAt(text, at + word.length);
      if (anywhere || (!isLetterBefore(text, at) && (whole || !onlyWhole))) {
        hits++;
        for (let next = text.indexOf("\n", lineAt); next >= 0 && next < at; next = text.indexOf("\n", lineAt)) {
          lineNumber++;
          lineAt = next + 1;
        }
        const hit = found.get(lineNumber) ?? { words: new Set<number>(), whole: 0 };
        if (!hit.words.has(index) && (whole || anywhere)) hit.whole++;
        hit.words.add(index);
        found.set(lineNumber, hit);
        // Its other hits change nothing.
        const next = text.indexOf("\n", at);
        if (next < 0) break;
        at = text.indexOf(word, next);
      } else at = text.indexOf(word, at + word.length);
    }
  }
  return [...found]
    .sort(([a], [b]) => a - b)
    .flatMap(([number, hit]) => {
      const line = lines[number];
      return line ? [{ line, ...hit }] : [];
    });
}

const isLetterBefore = (text: string, at: number) =>
  isLetterAt(text, at - 1) || (at > 1 && isLetterAt(text, at - 2) && (text.codePointAt(at - 2) ?? 0) > 0xffff);

const EXCERPT = 200;
const BEFORE = 60;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;

/** A part of a long text around the first word that begins with one of a query. */
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
