import type { TimedPiece } from "./timed-pieces.ts";

/** Ends a sentence, also within closing quotation marks and brackets. Devanagari and Arabic have signs of their own. */
const SENTENCE = /[.!?…。！？｡؟۔।॥։။][\p{Pe}\p{Pf}"'”’]*$/u;
const PHRASE = /[,;:،؛、，；：､—–-][\p{Pe}\p{Pf}"'”’]*$/u;
/** A period of these ends no sentence; nor does that of an initial or of a number before a word. */
const ABBREVIATION =
  /^[\p{Ps}\p{Pi}"']*(?:\p{L}|mr|mrs|ms|dr|st|prof|vs|no|nr|z\.b|d\.h|u\.a|bzw|ca|etc|e\.g|i\.e|m|mme|mlle|sr|sra|srta|ud|uds|jr)\.$/iu;
const LOWERCASE = /^[\p{Ps}\p{Pi}"']*\p{Ll}/u;
const ORDINAL = /^\d{1,3}\.$/;

/** Words before which a phrase begins. */
const CONJUNCTIONS = new Set(
  [
    "and or but because that which who whom whose when where while if so than although until after before unless",
    "und oder aber denn weil dass wenn sondern als ob damit obwohl während bevor nachdem",
    "et ou mais donc car que qui parce quand lorsque si puisque comme dont",
    "y o pero porque que cuando si aunque como donde sino",
    "e o ma perché che quando se anche dove però mas porque ou",
    "en of maar omdat dat want als toen",
    "и но а или что чтобы потому если когда который",
    "і та але або що бо якщо коли",
    "i lub ale że bo gdy kiedy jeśli który",
    "أو ثم لكن لأن التي الذي إذا عندما",
    "או אבל כי אם כאשר",
    "और या लेकिन क्योंकि कि जब अगर",
    "그리고 그러나 하지만 그래서",
  ].flatMap((line) => line.split(" ")),
);
const MARKS = /[^\p{L}\p{M}]+/gu;

/** 0: the best place to end a cue or a line after a piece; 100: the worst. */
export type Break = { cost: number; isSentence: boolean };

/** The break between two pieces that follow one another. */
export function breakBetween(before: TimedPiece, after: TimedPiece): Break {
  if (endsSentence(before.text, after.text)) return { cost: 0, isSentence: true };
  const pauseMs = after.startMs - before.endMs;
  const ease = pauseMs >= 600 ? 0.3 : pauseMs >= 250 ? 0.6 : 1;
  return { cost: ease * costOf(before, after), isSentence: false };
}

function costOf(before: TimedPiece, after: TimedPiece): number {
  if (PHRASE.test(before.text)) return 25;
  if (CONJUNCTIONS.has(after.text.toLowerCase().replace(MARKS, ""))) return 45;
  if (after.opens) return 40;
  // After a short word, which often belongs to the next one: an article, a preposition.
  return before.isSpaced && before.width <= 3 ? 100 : 75;
}

function endsSentence(text: string, next: string): boolean {
  if (!SENTENCE.test(text)) return false;
  if (!text.endsWith(".")) return true;
  return !ABBREVIATION.test(text) && !ORDINAL.test(text) && !LOWERCASE.test(next);
}
