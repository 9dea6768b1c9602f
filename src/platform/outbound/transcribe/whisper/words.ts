import type { Word } from "../speech.ts";

/** Token of the library with its time in the part, in milliseconds. */
export type Token = { text: string; t0: number; t1: number };

/** A word; `isSpaced`: whether a space precedes it. */
export type TimedWord = Pick<Word, "text" | "startMs" | "endMs"> & { isSpaced: boolean };

/** Scripts without spaces between words: each token is a word there. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u;
const ONLY_MARKS = /^[\p{P}\p{S}\p{M}]+$/u;
/** `[BLANK_AUDIO]`, `(music)`, `*laughs*`, `♪`: what is heard, not said. */
const NOTE_OF_NOISE = /\[[^[\]]{0,80}\]|\([^()]{0,80}\)|\*[^*]{0,80}\*|[♪♫]/gu;

/**
 * The words of the tokens of a part that begins at `offsetMs`. A character whose bytes are in two tokens arrives as
 * replacement characters: `text`, which the library joins from the bytes, has it whole.
 */
export function wordsOf(tokens: readonly Token[], text: string, offsetMs: number): TimedWord[] {
  const words: TimedWord[] = [];
  for (const { text: piece, t0, t1 } of repaired(tokens, text)) {
    const shown = piece.trim();
    if (shown === "") continue;
    const last = words.at(-1);
    const isSpaced = /^\s/.test(piece);
    const startsWord = isSpaced || (UNSPACED.test(shown) && !ONLY_MARKS.test(shown)) || endsUnspaced(last, shown);
    const startMs = Math.max(0, t0) + offsetMs;
    const endMs = Math.max(t0, t1, 0) + offsetMs;
    if (last && !startsWord) {
      last.text += shown;
      last.endMs = Math.max(last.endMs, endMs);
    } else words.push({ text: shown, startMs, endMs, isSpaced });
  }
  return withoutNotes(words);
}

/** Latin letters after a word of a script without spaces. */
const endsUnspaced = (last: TimedWord | undefined, shown: string) =>
  last !== undefined && UNSPACED.test(last.text.at(-1) ?? "") && !ONLY_MARKS.test(shown);

/** Tokens with the texts of `text`; the parts of a character become one token. */
function repaired(tokens: readonly Token[], text: string): Token[] {
  if (!tokens.some((token) => token.text.includes("\ufffd"))) return [...tokens];
  const result: Token[] = [];
  let at = 0;
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index] as Token;
    if (!token.text.includes("\ufffd")) {
      result.push(token);
      at += token.text.length;
      continue;
    }
    let last = index;
    while (tokens[last + 1]?.text.includes("\ufffd")) last++;
    const next = tokens.slice(last + 1).find((each) => each.text !== "")?.text;
    const found = next === undefined ? text.length : text.indexOf(next, at + 1);
    const end = found < 0 ? text.length : found;
    result.push({ text: text.slice(at, end), t0: token.t0, t1: (tokens[last] as Token).t1 });
    at = end;
    index = last;
  }
  return result;
}

/** Without notes about what is heard, which may have several words. */
function withoutNotes(words: readonly TimedWord[]): TimedWord[] {
  const text = words.map((word) => word.text).join(" ");
  const notes = [...text.matchAll(NOTE_OF_NOISE)].map((match) => [match.index, match.index + match[0].length] as const);
  if (notes.length === 0) return [...words];
  let at = 0;
  return words.flatMap((word) => {
    const start = at;
    at += word.text.length + 1;
    const rest = [...word.text]
      .map((character, index, all) => {
        const position = start + all.slice(0, index).join("").length;
        return notes.some(([from, to]) => position >= from && position < to) ? "" : character;
      })
      .join("");
    return rest === "" || ONLY_MARKS.test(rest) ? (rest === word.text ? [word] : []) : [{ ...word, text: rest }];
  });
}

/** For comparison: without case, marks and accents on width. */
export const normalized = (text: string): string =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\p{P}\p{S}\s]/gu, "");
