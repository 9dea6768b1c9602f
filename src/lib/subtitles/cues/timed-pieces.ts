import type { Sliced } from "#lib/base";
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
    const clock = new LetterClock(letters, utterance);
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

  constructor(pieces: readonly string[], { startMs, endMs, words }: TimedText) {
    const edge = (at: number, ms: number): Span => ({ from: at, to: at, startMs: ms, endMs: ms });
    const letters = pieces.join("");
    const spans = matched(letters, pieceStarts(pieces), words);
    const first = spans[0]?.startMs ?? startMs;
    const last = spans.at(-1)?.endMs ?? startMs;
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

function pieceStarts(pieces: readonly string[]): Set<number> {
  const starts = new Set<number>();
  let at = 0;
  for (const { length } of pieces) {
    starts.add(at);
    at += length;
  }
  return starts;
}

/**
 * Finds the words in the letters of the text, one after another: where the last one ended, else where a piece begins. What words
 * that are not found leave between two others is said when they are: engines write numbers and symbols in two ways.
 */
function matched(letters: string, starts: ReadonlySet<number>, words: readonly TimedWord[]): Span[] {
  const spans: Span[] = [];
  let at = 0;
  let missed: TimedWord[] = [];
  const close = (to: number) => {
    const first = missed[0];
    const last = missed.at(-1);
    if (first && last && to > at) spans.push({ from: at, to, startMs: first.startMs, endMs: last.endMs });
    missed = [];
  };
  for (const word of words) {
    const { text, startMs, endMs } = word;
    const own = lettersOf(text);
    if (own === "" || endMs < startMs) continue;
    const from = positionOf(own, letters, at, starts);
    if (from < 0) {
      missed.push(word);
      continue;
    }
    close(from);
    at = from + own.length;
    spans.push({ from, to: at, startMs, endMs });
  }
  close(letters.length);
  return spans;
}

function positionOf(word: string, letters: string, at: number, starts: ReadonlySet<number>): number {
  if (letters.startsWith(word, at)) return at;
  const window = letters.slice(at, at + SEARCHED + word.length);
  for (let found = window.indexOf(word); found >= 0; found = window.indexOf(word, found + 1))
    if (starts.has(at + found)) return at + found;
  return -1;
}
