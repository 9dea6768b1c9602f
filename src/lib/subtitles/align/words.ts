import { SPACELESS } from "../spaceless.ts";
import { decodeEntities } from "./entities.ts";

/** Each character of a script without spaces counts as a word. */
const WORD = new RegExp(String.raw`[[${SPACELESS}]&&\p{L}]\p{M}*|[[\p{L}\p{N}\p{M}]--[[${SPACELESS}]&&\p{L}]]+`, "gv");
/** Tags of WebVTT, and the style overrides of SubStation that converters leave in, such as {\an8}. */
const MARKUP = /<[^<>]*>|\{\\[^{}]*\}/g;
/** Notes for the hard of hearing; one track may have them and the next none. */
const NOTES = /\[[^\][]*\]|\([^()]*\)|（[^（）]*）|【[^【】]*】/g;
/** Apostrophes and hyphens inside words, which are written in several ways or omitted. */
const APOSTROPHES = /['’‘ʼ`´\u00ad\u200b-\u200d\u2060]/g;

/** Longer than any readable cue; bounds the cost of hostile input. */
const MAX_CHARACTERS = 10_000;

/**
 * The words of a cue in the form in which they are compared: without markup, such notes, punctuation and case
 * (UAX #15 NFKC; upper then lower case folds ß and ς too). Empty when the cue has no speech.
 */
export function wordsOf(text: string): string[] {
  const start = text.length > MAX_CHARACTERS ? text.slice(0, MAX_CHARACTERS) : text;
  const plain = decodeEntities(start.replace(MARKUP, " ")).replace(NOTES, " ").replace(APOSTROPHES, "");
  return plain.normalize("NFKC").toUpperCase().toLowerCase().replaceAll("ς", "σ").normalize("NFKC").match(WORD) ?? [];
}
