import { deflateSync, inflateSync } from "node:zlib";
import * as v from "valibot";
import { MAX_WORD_CHARACTERS, MAX_WORDS_BYTES, type SpokenWords } from "#protocol/speech.ts";

const Time = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const Words = v.array(v.strictTuple([v.pipe(v.string(), v.maxLength(MAX_WORD_CHARACTERS)), Time, Time]));

/** Deflated times of words from their JSON (`SpokenWords`), or what is wrong with it. */
export function checkedWords(text: string): { words: Uint8Array | null; fault: string | null } {
  const refused = (fault: string) => ({ words: null, fault });
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return refused("is not JSON");
  }
  const parsed = v.safeParse(Words, json, { abortEarly: true });
  if (!parsed.success) return refused("must be a list of [text, start_ms, end_ms]");
  if (parsed.output.some(([, startMs, endMs]) => endMs < startMs))
    return refused("has a word that ends before it starts");
  return { words: deflateSync(JSON.stringify(parsed.output)), fault: null };
}

/** The body of a transcript with words. `words`: of `checkedWords`. */
export function wordsJson(words: Uint8Array, language: string): string {
  const list: SpokenWords = JSON.parse(inflateSync(words, { maxOutputLength: 2 * MAX_WORDS_BYTES }).toString("utf8"));
  const shown = list.map(([text, start_ms, end_ms]) => ({ text, start_ms, end_ms }));
  return JSON.stringify({ language, words: shown });
}
