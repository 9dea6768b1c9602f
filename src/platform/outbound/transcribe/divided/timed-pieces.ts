import type { Utterance, Word } from "../speech.ts";
import type { TimedWord } from "../whisper/words.ts";

/** A word of an utterance as its text shows it, with punctuation; `word` is null where the engine has no times of words. */
export type SpokenPiece = TimedWord & { utterance: Utterance; word: Word | null };

/** How far the next word is searched in the text: engines may write a number in one of both only. */
const SEARCHED = 64;

/** The words of an utterance, each with what its text has next to it. Without times of words they are divided by their length. */
export function piecesOf(utterance: Utterance): SpokenPiece[] {
  const { words } = utterance;
  if (words.length === 0) return dividedText(utterance);
  return wordsInText(utterance) ?? wordsWithoutText(utterance);
}

/** The words without their text, which has others. */
function wordsWithoutText(utterance: Utterance): SpokenPiece[] {
  const statesSpaces = utterance.words.some(({ text }) => /^\s|\s$/.test(text));
  return utterance.words.flatMap((word, index) => {
    const { startMs, endMs } = word;
    const text = word.text.trim();
    const isSpaced = index === 0 || /^\s/.test(word.text) || !statesSpaces;
    return text === "" ? [] : [{ text, startMs, endMs, isSpaced, utterance, word }];
  });
}

/** Null where the text does not have all of the words. */
function wordsInText(utterance: Utterance): SpokenPiece[] | null {
  const { words } = utterance;
  const text = utterance.text.trim();
  const pieces: SpokenPiece[] = [];
  let end = 0;
  for (const word of words) {
    const own = word.text.trim();
    if (own === "") continue;
    const found = text.slice(end, end + SEARCHED + own.length).indexOf(own);
    if (found < 0) return null;
    const between = text.slice(end, end + found);
    const space = between.search(/\s\S*$/);
    // Marks before the last space belong to the word before, those after it to this one.
    const isSpaced = pieces.length === 0 || space >= 0;
    const [before, after] = isSpaced && space >= 0 ? [between.slice(0, space), between.slice(space)] : [between, ""];
    const last = pieces.at(-1);
    if (last) last.text += before.trimEnd();
    const lead = last ? after.trim() : between.trim();
    end += found + own.length;
    pieces.push({ text: lead + own, startMs: word.startMs, endMs: word.endMs, isSpaced, utterance, word });
  }
  const last = pieces.at(-1);
  if (!last) return null;
  last.text += text.slice(end).trimEnd();
  return pieces;
}

function dividedText(utterance: Utterance): SpokenPiece[] {
  const { startMs, endMs } = utterance;
  const texts = utterance.text.trim().split(/\s+/).filter(Boolean);
  const letters = texts.reduce((sum, { length }) => sum + length, 0);
  let at = 0;
  return texts.map((text) => {
    const from = startMs + ((endMs - startMs) * at) / letters;
    at += text.length;
    const to = startMs + ((endMs - startMs) * at) / letters;
    return { text, startMs: Math.round(from), endMs: Math.round(to), isSpaced: true, utterance, word: null };
  });
}
