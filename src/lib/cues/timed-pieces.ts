import type { Sliced } from "../sliced.ts";
import { joinsWithoutSpace, oneLine, type Piece, piecesOf } from "./pieces.ts";
import { widthOf } from "./width.ts";

export type TimedWord = { text: string; startMs: number; endMs: number };
/** What was said in one stretch; `words` may be empty. Times in ms. */
export type TimedText = TimedWord & { words: readonly TimedWord[] };

/** `opens`: it begins an utterance, where an engine saw a boundary. */
export type TimedPiece = Piece & { startMs: number; endMs: number; width: number; opens: boolean };

/** How far a word is searched in the text, in letters: engines write numbers and symbols in one of both only. */
const SEARCHED = 64;
const NOT_LETTERS = /[^\p{L}\p{N}\p{M}]+/gu;
const lettersOf = (text: string) => text.normalize("NFC").toLowerCase().replace(NOT_LETTERS, "");

/** When the letters `from` to `to` (exclusive) of a text are said. */
type Span = { from: number; to: number; startMs: number; endMs: number };

/**
 * The pieces of all utterances with their times, in the order in which they are given, which never go back. The text of an
 * utterance decides what is shown, and its words when. What no word states is divided by letters.
 */
export function* timedPieces(utterances: readonly TimedText[], maxWidth: number): Sliced<TimedPiece[]> {
  const all: TimedPiece[] = [];
  let reached = 0;
  for (const utterance of utterances) {
    yield;
    const text = oneLine(utterance.text) || joined(utterance.words);
    const pieces = yield* piecesOf(text, maxWidth);
    const letters = pieces.map((piece) => lettersOf(piece.text));
    const clock = new LetterClock(letters.join(""), utterance);
    let at = 0;
    for (const [index, piece] of pieces.entries()) {
      const from = at;
      at += (letters[index] as string).length;
      const startMs = Math.max(reached, Math.round(clock.startOf(from)));
      const endMs = Math.max(startMs, Math.round(at > from ? clock.endOf(at) : startMs));
      reached = startMs;
      // A column at least, so that no number of pieces fits a line.
      const width = Math.max(1, widthOf(piece.text));
      all.push({ ...piece, isSpaced: piece.isSpaced || index === 0, startMs, endMs, width, opens: index === 0 });
    }
  }
  for (const [index, piece] of all.entries()) {
    const last = all[index - 1];
    if (last && piece.opens && joinsWithoutSpace(last.text, piece.text)) piece.isSpaced = false;
  }
  return all;
}

/** The words as a text: with the spaces that they contain, else separated where their script separates words. */
function joined(words: readonly TimedWord[]): string {
  const hasSpaces = words.some(({ text }) => /^\s|\s$/u.test(text));
  let text = "";
  for (const word of words) {
    const isJoined = hasSpaces || text === "" || joinsWithoutSpace(text.slice(-2), word.text);
    text += isJoined ? word.text : ` ${word.text}`;
  }
  return oneLine(text);
}

/** When the letters of an utterance are said. Its methods are called with ascending positions. */
class LetterClock {
  readonly #spans: readonly Span[];
  #next = 0;

  constructor(letters: string, { startMs, endMs, words }: TimedText) {
    const edge = (at: number, ms: number): Span => ({ from: at, to: at, startMs: ms, endMs: ms });
    const spans = matched(letters, words);
    const [first, last] = [spans[0]?.startMs ?? startMs, spans.at(-1)?.endMs ?? startMs];
    this.#spans = [edge(0, Math.min(startMs, first)), ...spans, edge(letters.length, Math.max(endMs, last))];
  }

  /** When the letter at `at` begins. */
  startOf(at: number): number {
    while (this.#next + 1 < this.#spans.length && (this.#spans[this.#next + 1] as Span).from <= at) this.#next++;
    return this.#within(this.#next, at);
  }

  /** When the letter before `at` ends. */
  endOf(at: number): number {
    let index = this.#next;
    while (index + 1 < this.#spans.length && (this.#spans[index + 1] as Span).from < at) index++;
    return this.#within(index, at);
  }

  #within(index: number, at: number): number {
    const span = this.#spans[index] as Span;
    if (at <= span.to && span.to > span.from)
      return span.startMs + ((at - span.from) / (span.to - span.from)) * (span.endMs - span.startMs);
    const next = this.#spans[index + 1];
    if (!next || next.from <= span.to) return span.endMs;
    return span.endMs + ((at - span.to) / (next.from - span.to)) * Math.max(0, next.startMs - span.endMs);
  }
}

/** Finds the words in the letters of the text, one after another. */
function matched(letters: string, words: readonly TimedWord[]): Span[] {
  const spans: Span[] = [];
  let at = 0;
  for (const { text, startMs, endMs } of words) {
    const own = lettersOf(text);
    if (own === "" || endMs < startMs) continue;
    const found = letters.slice(at, at + SEARCHED + own.length).indexOf(own);
    if (found < 0) continue;
    spans.push({ from: at + found, to: at + found + own.length, startMs, endMs });
    at += found + own.length;
  }
  return spans;
}
