import { SPACELESS } from "#lib/subtitles";

/**
 * Marks that many writers leave out: Latin, Greek and Cyrillic diacritics, Hebrew points, Arabic vowels and the tatweel. Marks of
 * other scripts, such as Devanagari vowels or the Japanese dakuten, are parts of letters and stay.
 */
const OPTIONAL_MARKS =
  /[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]/g;
/** Characters without width: soft hyphen, joiners, byte order mark. */
const INVISIBLE = /[\u00ad\u200b-\u200f\u2060\ufeff]/g;
/** Letters that Unicode does not decompose. */
const LETTERS: Readonly<Record<string, string>> = {
  æ: "ae",
  œ: "oe",
  ø: "o",
  ł: "l",
  đ: "d",
  ð: "d",
  þ: "th",
  ħ: "h",
  ŧ: "t",
  ς: "σ",
  ى: "ي",
  ٱ: "ا",
  ة: "ه",
};
const OTHER_LETTERS = /[æœøłđðþħŧςىٱة]/g;
const ASCII = /^[\0-\x7f]*$/;

/**
 * A text in the form in which a search compares it: without case, diacritics and compatibility forms (UAX #15 NFKD). ß is ss, as
 * in upper case. Line breaks are kept, and nothing else becomes one.
 */
export function folded(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  return text
    .normalize("NFKD")
    .replace(INVISIBLE, "")
    .replace(OPTIONAL_MARKS, "")
    .toUpperCase()
    .toLowerCase()
    .replace(OTHER_LETTERS, (letter) => LETTERS[letter] ?? letter)
    .normalize("NFC");
}

const WORD = new RegExp(
  String.raw`[[${SPACELESS}]&&\p{L}][[[${SPACELESS}]&&\p{L}]\p{M}]*|[[\p{L}\p{N}\p{M}]--[[${SPACELESS}]&&\p{L}]]+`,
  "gv",
);
const STARTS_SPACELESS = new RegExp(String.raw`^[[${SPACELESS}]&&\p{L}]`, "v");
const LETTER = /^[\p{L}\p{N}\p{M}]/u;
const MARK = /^\p{M}/u;
/** More marks than any script puts on a letter; a hostile text has no end of them. */
const MOST_MARKS = 32;

/** The words of a folded text; a run of a script without spaces, such as Chinese or Thai, is one. */
export const wordsIn = (text: string): string[] => text.match(WORD) ?? [];

/** Whether the word is of a script without spaces: it is found anywhere, not only where a word begins. */
export const isSpaceless = (word: string): boolean => STARTS_SPACELESS.test(word);

const characterAt = (text: string, at: number): string => {
  const code = text.codePointAt(at);
  return code === undefined ? "" : String.fromCodePoint(code);
};

/** The character that ends at `at`; empty at the start of the text. */
function characterBefore(text: string, at: number): string {
  const one = text.charAt(at - 1);
  const two = at > 1 ? characterAt(text, at - 2) : "";
  return two.length === 2 ? two : one;
}

/** Whether a word of a script with spaces begins at `at`: nothing of another such word is before it, with its marks. */
export function beginsWordAt(text: string, at: number): boolean {
  let from = at;
  let before = characterBefore(text, from);
  for (let count = 0; count < MOST_MARKS && MARK.test(before); count++) {
    from -= before.length;
    before = characterBefore(text, from);
  }
  return !LETTER.test(before) || isSpaceless(before);
}

/** Whether a word of a script with spaces ends before `at`: a letter of a script without spaces is another word. */
export const endsWordAt = (text: string, at: number): boolean => {
  const next = characterAt(text, at);
  return !LETTER.test(next) || isSpaceless(next);
};
