import type { Sliced } from "#lib/base";
import { HAS_SPACELESS } from "../spaceless.ts";
import { widthOf } from "./width.ts";

/** Begins no line: closing brackets and quotation marks, punctuation, long-vowel and iteration marks. */
const NO_START = /^[\p{Pe}\p{Pf}\p{Po}\p{Pd}\p{M}ーゝゞヽヾ々ๆໆ!?.,:;'"…]/u;
/** Ends no line: opening brackets and quotation marks. */
const NO_END = /[\p{Ps}\p{Pi}¿¡]$/u;
/** Neither Unicode's controls nor its separators of lines; a soft hyphen or a mark of direction stays. */
const CONTROLS = /[\p{Cc}\u2028\u2029\ufeff]+/gu;

/** The longest text that is segmented at once. */
const SEGMENTED = 1000;
const CHUNKS_PER_SLICE = 200;

/** A part of a text that is never divided; `isSpaced`: a space precedes it. */
export type Piece = { text: string; isSpaced: boolean };

const words = new Intl.Segmenter("und", { granularity: "word" });
const graphemes = new Intl.Segmenter("und", { granularity: "grapheme" });

/** In one line, without controls. */
export const oneLine = (text: string): string => text.replace(CONTROLS, " ").replace(/\s+/gu, " ").trim();

/** Whether the two texts are written without a space between them. */
export const joinsWithoutSpace = (before: string, after: string): boolean =>
  HAS_SPACELESS.test(before.slice(-2)) && (HAS_SPACELESS.test(after.slice(0, 2)) || NO_START.test(after));

/**
 * Divides a text of one line into pieces: at spaces, and between the words of scripts without spaces; what is wider than
 * `maxWidth` between characters.
 */
export function* piecesOf(text: string, maxWidth: number): Sliced<Piece[]> {
  const pieces: Piece[] = [];
  for (const [index, chunk] of text.split(" ").entries()) {
    if (index % CHUNKS_PER_SLICE === 0) yield;
    if (chunk === "") continue;
    let isSpaced = pieces.length > 0;
    for (const part of HAS_SPACELESS.test(chunk) ? yield* wordsOf(chunk) : [chunk])
      for (const own of widthOf(part) > maxWidth ? yield* narrowed(part, maxWidth) : [part]) {
        pieces.push({ text: own, isSpaced });
        isSpaced = false;
      }
  }
  return pieces;
}

/** The words of a text without spaces, with the punctuation that belongs to them. */
function* wordsOf(chunk: string): Sliced<string[]> {
  const found: string[] = [];
  for (const part of portions(chunk)) {
    for (const { segment } of words.segment(part)) {
      const last = found.at(-1);
      if (last !== undefined && (NO_START.test(segment) || NO_END.test(last))) found[found.length - 1] = last + segment;
      else found.push(segment);
    }
    yield;
  }
  return found;
}

function* narrowed(text: string, maxWidth: number): Sliced<string[]> {
  const lines: string[] = [];
  let line = "";
  let width = 0;
  for (const part of portions(text)) {
    for (const { segment } of graphemes.segment(part)) {
      const own = widthOf(segment);
      if (width + own > maxWidth && line !== "") {
        lines.push(line);
        line = "";
        width = 0;
      }
      line += segment;
      width += own;
    }
    yield;
  }
  lines.push(line);
  return lines;
}

/** Long texts in portions that do not divide a surrogate pair. */
function* portions(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + SEGMENTED);
    if (to < text.length && /[\ud800-\udbff]/.test(text.charAt(to - 1))) to--;
    yield text.slice(from, to);
    from = to;
  }
}
