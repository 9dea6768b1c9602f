import { decodeEntities } from "./entities.ts";

/** Scripts that put no space between words: each of their characters counts as a word. */
const SPACELESS = String.raw`\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmr}\p{scx=Mymr}`;
const WORD = new RegExp(String.raw`[[${SPACELESS}]&&\p{L}]\p{M}*|[[\p{L}\p{N}\p{M}]--[[${SPACELESS}]&&\p{L}]]+`, "gv");
/** Tags of WebVTT and the style overrides of SubStation that converters leave behind, such as {\an8}. */
const MARKUP = /<[^<>]*>|\{\\[^{}]*\}/g;
/** What is heard rather than said; one track has such notes and the next has none. */
const NOTES = /\[[^\][]*\]|\([^()]*\)|（[^（）]*）|【[^【】]*】/g;
/** Written inside words, in half a dozen ways or not at all. */
const APOSTROPHES = /['’‘ʼ`´\u00ad\u200b-\u200d\u2060]/g;

/** Nobody reads more in one cue; what was made to be long does not hold up the rest. */
const MAX_CHARACTERS = 10_000;

/**
 * The words of a cue as they are compared: without markup, notes for the hard of hearing, punctuation and case
 * (UAX #15 NFKC; upper then lower case folds ß and ς too). Empty when nothing is said.
 */
export function wordsOf(text: string): string[] {
  const start = text.length > MAX_CHARACTERS ? text.slice(0, MAX_CHARACTERS) : text;
  const plain = decodeEntities(start.replace(MARKUP, " ")).replace(NOTES, " ").replace(APOSTROPHES, "");
  return plain.normalize("NFKC").toUpperCase().toLowerCase().replaceAll("ς", "σ").normalize("NFKC").match(WORD) ?? [];
}
