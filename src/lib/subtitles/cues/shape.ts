import type { Sliced } from "#lib/base";
import { type Break, breakBetween } from "./breaks.ts";
import { type TimedPiece, type TimedText, timedPieces } from "./timed-pieces.ts";

/** A cue as it is shown: one or two lines of plain text. Times in ms. */
export type ShapedCue = { startMs: number; endMs: number; lines: string[] };

/** Columns of a line, and of the text that is read in a second. */
export const LINE_COLUMNS = 42;
export const COLUMNS_PER_SECOND = 20;
export const CUE_MS = { least: 1000, most: 7000 };
/** Two frames of 25 in a second: viewers see that the text has changed. */
export const GAP_MS = 80;
/** A pause that no cue contains. */
const PAUSE_MS = 2000;
/** A pause after which one should begin. */
const SHORT_PAUSE_MS = 700;

const PIECES_PER_SLICE = 100;
/** Costs in units of `Break`. */
const COST = {
  cue: 20,
  innerSentence: 30,
  innerPause: 50,
  /** Per second that it is shown too short or is spoken too long. */
  second: 90,
  /** Per column in a second more than are read. */
  speed: 4,
  speedMost: 120,
  /** A few words of a sentence alone. */
  orphan: 40,
};
const ORPHAN_COLUMNS = 12;

/**
 * Shapes what was said into cues that people can read: at most two lines of 42 columns, shown for 1 to 7 seconds, at most 20
 * columns a second where the speech leaves time; they end with sentences, then with phrases. Every word is in exactly one cue,
 * and no two cues overlap. A cue begins with its first word. The division with the least cost is found by dynamic programming;
 * as a cue holds a limited number of pieces, time is linear.
 */
export function* shapedCues(utterances: readonly TimedText[]): Sliced<ShapedCue[]> {
  const pieces = yield* timedPieces(utterances, LINE_COLUMNS);
  const text = new Measured(pieces);
  yield* text.measure();
  const ranges = yield* divided(text);
  const cues: ShapedCue[] = [];
  for (const [index, [from, to]] of ranges.entries()) {
    if (index % PIECES_PER_SLICE === 0) yield;
    const nextMs = pieces[to]?.startMs ?? Number.POSITIVE_INFINITY;
    cues.push({ ...shownTimes(text, from, to, nextMs), lines: text.linesOf(from, to) });
  }
  return separated(cues);
}

/** Pieces with sums over them. Ranges are from one piece up to another, which they exclude. */
class Measured {
  readonly pieces: readonly TimedPiece[];
  readonly #columns: Float64Array;
  readonly #sentences: Int32Array;
  readonly #pauses: Int32Array;
  /** The end of the longest line that begins at each piece. */
  readonly #lineEnds: Int32Array;
  /** After each piece. */
  readonly breaks: Break[] = [];

  constructor(pieces: readonly TimedPiece[]) {
    this.pieces = pieces;
    const count = pieces.length + 1;
    this.#columns = new Float64Array(count);
    this.#sentences = new Int32Array(count);
    this.#pauses = new Int32Array(count);
    this.#lineEnds = new Int32Array(count);
  }

  *measure(): Sliced<void> {
    const { pieces } = this;
    for (const [index, piece] of pieces.entries()) {
      if (index % PIECES_PER_SLICE === 0) yield;
      const next = pieces[index + 1];
      const end = next ? breakBetween(piece, next) : { cost: 0, isSentence: true };
      const isPause = next !== undefined && next.startMs - piece.endMs >= SHORT_PAUSE_MS;
      this.breaks.push(end);
      this.#columns[index + 1] = this.#at(this.#columns, index) + piece.width + (piece.isSpaced ? 1 : 0);
      this.#sentences[index + 1] = this.#at(this.#sentences, index) + (end.isSentence ? 1 : 0);
      this.#pauses[index + 1] = this.#at(this.#pauses, index) + (isPause ? 1 : 0);
    }
    let end = 0;
    for (let from = 0; from < pieces.length; from++) {
      if (from % PIECES_PER_SLICE === 0) yield;
      end = Math.max(end, from + 1);
      while (end < pieces.length && this.columnsOf(from, end + 1) <= LINE_COLUMNS) end++;
      this.#lineEnds[from] = end;
    }
    this.#lineEnds[pieces.length] = pieces.length;
  }

  #at(sums: Float64Array | Int32Array, index: number): number {
    return sums[index] as number;
  }

  columnsOf(from: number, to: number): number {
    const isSpaced = this.pieces[from]?.isSpaced;
    return this.#at(this.#columns, to) - this.#at(this.#columns, from) - (isSpaced ? 1 : 0);
  }

  /** Whether two lines hold the range. */
  fits(from: number, to: number): boolean {
    return to <= this.#at(this.#lineEnds, this.#at(this.#lineEnds, from));
  }

  /** Sentences that end before the last piece of the range. */
  innerSentences(from: number, to: number): number {
    return this.#at(this.#sentences, to - 1) - this.#at(this.#sentences, from);
  }

  innerPauses(from: number, to: number): number {
    return this.#at(this.#pauses, to - 1) - this.#at(this.#pauses, from);
  }

  endOf(from: number, to: number): number {
    let end = 0;
    for (let index = from; index < to; index++) end = Math.max(end, (this.pieces[index] as TimedPiece).endMs);
    return end;
  }

  linesOf(from: number, to: number): string[] {
    if (this.columnsOf(from, to) <= LINE_COLUMNS) return [this.#text(from, to)];
    let best = this.#at(this.#lineEnds, from);
    let least = Number.POSITIVE_INFINITY;
    for (let at = from + 1; at < to; at++) {
      const first = this.columnsOf(from, at);
      const second = this.columnsOf(at, to);
      if (first > LINE_COLUMNS) break;
      if (second > LINE_COLUMNS) continue;
      // A longer second line covers less of the image than a longer first one.
      const cost = (this.breaks[at - 1] as Break).cost + Math.abs(first - second) * 1.5 + (first > second ? 5 : 0);
      if (cost >= least) continue;
      least = cost;
      best = at;
    }
    return [this.#text(from, best), this.#text(best, to)];
  }

  #text(from: number, to: number): string {
    let text = "";
    for (let index = from; index < to; index++) {
      const piece = this.pieces[index] as TimedPiece;
      text += index > from && piece.isSpaced ? ` ${piece.text}` : piece.text;
    }
    return text;
  }
}

type Range = [from: number, to: number];

/** The division of all pieces with the least cost. */
function* divided(text: Measured): Sliced<Range[]> {
  const { pieces } = text;
  const costs = new Float64Array(pieces.length + 1).fill(Number.POSITIVE_INFINITY);
  const starts = new Int32Array(pieces.length + 1);
  costs[0] = 0;
  for (let to = 1; to <= pieces.length; to++) {
    if (to % PIECES_PER_SLICE === 0) yield;
    const end = text.breaks[to - 1] as Break;
    for (let from = to - 1; from >= 0 && text.fits(from, to); from--) {
      const cost = (costs[from] as number) + cueCost(text, from, to) + end.cost;
      if (cost < (costs[to] as number)) {
        costs[to] = cost;
        starts[to] = from;
      }
      const piece = pieces[from] as TimedPiece;
      const last = pieces[from - 1];
      if (last && piece.startMs - last.endMs >= PAUSE_MS) break;
    }
  }
  const ranges: Range[] = [];
  for (let to = pieces.length; to > 0; to = starts[to] as number) ranges.push([starts[to] as number, to]);
  return ranges.reverse();
}

function cueCost(text: Measured, from: number, to: number): number {
  const { pieces, breaks } = text;
  const first = pieces[from] as TimedPiece;
  const last = pieces[to - 1] as TimedPiece;
  const spokenMs = Math.max(0, last.endMs - first.startMs);
  const freeMs = (pieces[to]?.startMs ?? Number.POSITIVE_INFINITY) - GAP_MS - first.startMs;
  const shownMs = Math.max(1, Math.min(CUE_MS.most, Math.max(freeMs, 1)));
  const columns = text.columnsOf(from, to);
  const tooFast = (columns * 1000) / shownMs - COLUMNS_PER_SECOND;
  const opensSentence = from === 0 || (breaks[from - 1] as Break).isSentence;
  const isWhole = opensSentence && (breaks[to - 1] as Break).isSentence;
  let cost =
    COST.cue + COST.innerSentence * text.innerSentences(from, to) + COST.innerPause * text.innerPauses(from, to);
  cost += (COST.second * Math.max(0, CUE_MS.least - shownMs, spokenMs - CUE_MS.most)) / 1000;
  cost += Math.min(COST.speedMost, COST.speed * Math.max(0, tooFast));
  if (columns < ORPHAN_COLUMNS && !isWhole) cost += COST.orphan;
  return cost;
}

/** From the first word to the last one, and as long as reading takes, where no other cue follows. */
function shownTimes(text: Measured, from: number, to: number, nextMs: number): { startMs: number; endMs: number } {
  const { startMs } = text.pieces[from] as TimedPiece;
  const readMs = Math.ceil((text.columnsOf(from, to) * 1000) / COLUMNS_PER_SECOND);
  const wanted = Math.max(text.endOf(from, to), startMs + Math.max(CUE_MS.least, readMs));
  return { startMs, endMs: Math.min(wanted, startMs + CUE_MS.most, nextMs - GAP_MS) };
}

/** Cues whose words an engine put at the same time, or that are shorter than the gap, follow one another without it. */
function separated(cues: ShapedCue[]): ShapedCue[] {
  let reached = 0;
  for (const [index, cue] of cues.entries()) {
    cue.startMs = Math.max(reached, cue.startMs);
    const nextMs = cues[index + 1]?.startMs ?? Number.POSITIVE_INFINITY;
    if (cue.endMs - cue.startMs < GAP_MS) cue.endMs = Math.max(cue.startMs + 1, Math.min(nextMs, cue.startMs + GAP_MS));
    reached = cue.endMs;
  }
  return cues;
}
