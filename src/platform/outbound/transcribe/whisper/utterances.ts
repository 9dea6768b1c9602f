import type { Utterance } from "../speech.ts";
import { normalized, type TimedWord } from "./words.ts";

const PAUSE_MS = 700;
/** After the end of a sentence; `Dr.` is followed by none. */
const SENTENCE_PAUSE_MS = 200;
const SENTENCE_END = /[.?!…。！？؟।]["'”’»)\]]*$/u;
const LONGEST_MS = 30_000;
/** The same utterance so often in a row is a loop over the borders of parts. */
const LOOP = 3;
const LOOP_WORDS = 3;
/** About a part: after a longer pause, it is said again. */
const LOOP_GAP_MS = 30_000;

/** Groups words by pauses and sentences. */
export function utterancesOf(words: readonly TimedWord[]): Utterance[] {
  const groups: TimedWord[][] = [];
  for (const word of words) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    const pause = last ? word.startMs - last.endMs : 0;
    const isNew =
      !group ||
      !last ||
      pause >= PAUSE_MS ||
      (SENTENCE_END.test(last.text) && pause >= SENTENCE_PAUSE_MS) ||
      word.endMs - (group[0] as TimedWord).startMs > LONGEST_MS;
    if (isNew) groups.push([word]);
    else group.push(word);
  }
  return groups.map(utteranceOf);
}

const utteranceOf = (words: readonly TimedWord[]): Utterance => ({
  text: words.map(({ text, isSpaced }, index) => (index > 0 && isSpaced ? ` ${text}` : text)).join(""),
  startMs: (words[0] as TimedWord).startMs,
  endMs: Math.max(...words.map((word) => word.endMs)),
  confidence: null,
  words: words.map(({ text, startMs, endMs }) => ({ text, startMs, endMs, confidence: null })),
});

/** Passes utterances on, of a loop only the first. */
export class LoopFilter {
  #held: Utterance[] = [];
  readonly #places = new Set<unknown>();
  /** End of the last one that was pushed, which may not be held. */
  #endMs = 0;
  readonly #emit: (utterance: Utterance) => void;
  readonly #placeOf: (utterance: Utterance) => unknown;

  /** A loop is in LOOP places; by default each utterance is one. */
  constructor(emit: (utterance: Utterance) => void, placeOf = (utterance: Utterance): unknown => utterance) {
    this.#emit = emit;
    this.#placeOf = placeOf;
  }

  push(utterance: Utterance): void {
    const last = this.#held.at(-1);
    const isSame = last !== undefined && normalized(last.text) === normalized(utterance.text);
    if (!isSame || utterance.startMs - this.#endMs > LOOP_GAP_MS) this.flush();
    this.#endMs = utterance.endMs;
    // Short answers are repeated by people, too.
    if (utterance.words.length < LOOP_WORDS) this.#emit(utterance);
    // A long loop is held only as far as it decides.
    else if (!this.#isLoop()) {
      this.#held.push(utterance);
      this.#places.add(this.#placeOf(utterance));
    }
  }

  flush(): void {
    for (const utterance of this.#isLoop() ? this.#held.slice(0, 1) : this.#held) this.#emit(utterance);
    this.#held = [];
    this.#places.clear();
  }

  #isLoop(): boolean {
    return this.#places.size >= LOOP;
  }
}
