import { MAX_SUBTITLE_BYTES } from "#lib/base";
import type { Utterance } from "../speech.ts";
import { CaptionsTooLarge } from "../speech-text.ts";
import { joined, SAME_MS } from "../whisper/join.ts";
import { OVERLAP_MS } from "../whisper/parts.ts";
import { LoopFilter } from "../whisper/utterances.ts";
import { piecesOf, type SpokenPiece } from "./timed-pieces.ts";

/** What was recognized in a part, with a margin on both sides. Times are those of the whole audio. */
export type RecognizedPart = {
  startMs: number;
  endMs: number;
  /** A BCP 47 tag that was detected, or null. */
  language: string | null;
  utterances: readonly Utterance[];
};

/** Without times of words, which are then estimated, both parts time a word so differently. */
const ESTIMATED_MS = 2500;

/**
 * Joins what was recognized in the parts of long audio, in order, so that no word is lost or doubled where they overlap. Of an
 * utterance in a loop over several parts, which Whisper invents, the first remains; within a part people may repeat one.
 */
export class PartMerger {
  readonly #utterances: Utterance[] = [];
  /** Those that no other part can change. */
  readonly #settled: Utterance[] = [];
  #settledBytes = 0;
  /** Ends of the parts before. */
  readonly #ends: number[] = [];
  readonly #filter = new LoopFilter(
    (utterance) => {
      this.#settled.push(utterance);
      this.#settledBytes += bytesOf(utterance);
    },
    ({ startMs }) => this.#ends.findLastIndex((endMs) => endMs <= startMs),
  );
  readonly #languages = new Map<string, number>();
  #endMs: number | null = null;

  /** Throws CaptionsTooLarge. */
  add({ startMs, endMs, language, utterances }: RecognizedPart): void {
    const sorted = utterances.toSorted((one, other) => one.startMs - other.startMs);
    const letters = sorted.reduce((sum, { text }) => sum + text.length, 0);
    if (language !== null && letters > 0) this.#languages.set(language, (this.#languages.get(language) ?? 0) + letters);
    if (this.#endMs !== null) this.#join(sorted, (this.#endMs + startMs) / 2);
    else this.#utterances.push(...sorted);
    this.#endMs = endMs;
    this.#ends.push(endMs);
    this.#settle(endMs - OVERLAP_MS - ESTIMATED_MS);
    const openBytes = this.#utterances.reduce((sum, utterance) => sum + bytesOf(utterance), 0);
    if (this.#settledBytes + openBytes > MAX_SUBTITLE_BYTES) throw new CaptionsTooLarge();
  }

  /** The utterances of all parts, and the language of most of the text. */
  end(): { language: string | null; utterances: Utterance[] } {
    this.#settle(Number.POSITIVE_INFINITY);
    this.#filter.flush();
    const [most] = [...this.#languages].sort(([, one], [, other]) => other - one);
    return { language: most?.[0] ?? null, utterances: this.#settled };
  }

  #join(second: readonly Utterance[], cutMs: number): void {
    const reach = OVERLAP_MS + SAME_MS;
    const tail = this.#utterances.filter(({ endMs }) => endMs >= cutMs - reach);
    const head = second.filter(({ startMs }) => startMs <= cutMs + reach);
    const [before, after] = [tail, head].map((utterances) => utterances.flatMap(piecesOf)) as [
      ...[SpokenPiece[], SpokenPiece[]],
    ];
    const isEstimated = [...before, ...after].some(({ word }) => word === null);
    const pieces = joined(before, after, cutMs, isEstimated ? ESTIMATED_MS : SAME_MS);
    const counts = Map.groupBy([...before, ...after], ({ utterance }) => utterance);
    const rest = [
      ...this.#utterances.filter(({ endMs }) => endMs < cutMs - reach),
      ...regrouped(pieces, (utterance) => counts.get(utterance)?.length ?? 0),
      ...second.filter(({ startMs }) => startMs > cutMs + reach),
    ];
    this.#utterances.splice(0, this.#utterances.length, ...rest);
  }

  #settle(beforeMs: number): void {
    const open = this.#utterances.findIndex(({ endMs }) => endMs >= beforeMs);
    const count = open < 0 ? this.#utterances.length : open;
    for (const utterance of this.#utterances.splice(0, count)) this.#filter.push(utterance);
  }
}

const bytesOf = ({ text }: Utterance): number => Buffer.byteLength(text);

/** The utterances of the pieces that are left; one that has lost none of its pieces is the same. */
function regrouped(pieces: readonly SpokenPiece[], countOf: (utterance: Utterance) => number): Utterance[] {
  const groups: SpokenPiece[][] = [];
  for (const piece of pieces) {
    const group = groups.at(-1);
    if (group?.[0]?.utterance === piece.utterance) group.push(piece);
    else groups.push([piece]);
  }
  return groups.map((group) => {
    const first = group[0] as SpokenPiece;
    const last = group.at(-1) as SpokenPiece;
    if (group.length === countOf(first.utterance)) return first.utterance;
    return {
      text: group.map(({ text, isSpaced }, index) => (index > 0 && isSpaced ? ` ${text}` : text)).join(""),
      startMs: first.startMs,
      endMs: Math.max(first.startMs, last.endMs),
      confidence: first.utterance.confidence,
      words: group.flatMap(({ word }) => word ?? []),
    };
  });
}
