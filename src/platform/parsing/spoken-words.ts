import { deflateSync, inflateSync } from "node:zlib";
import * as v from "valibot";
import { runToEnd } from "#lib/base";
import { parsing, realignedWords } from "#lib/subtitles";
import { MAX_WORD_CHARACTERS, MAX_WORDS_BYTES, type SpokenWords } from "#protocol/speech.ts";

const Time = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const Share = v.pipe(v.number(), v.minValue(0), v.maxValue(1));
const Word = v.tupleWithRest([v.pipe(v.string(), v.maxLength(MAX_WORD_CHARACTERS)), Time, Time], Share);
const Words = v.array(v.pipe(Word, v.maxLength(4)));

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
  if (!parsed.success) return refused("must be a list of [text, start_ms, end_ms, confidence]");
  if (parsed.output.some(([, startMs, endMs]) => endMs < startMs))
    return refused("has a word that ends before it starts");
  return { words: deflateSync(JSON.stringify(parsed.output)), fault: null };
}

/** The body of a transcript with words. `words`: of `checkedWords`. */
export function wordsJson(words: Uint8Array, language: string): string {
  const shown = inflated(words).map(([text, start_ms, end_ms, confidence]) => ({ text, start_ms, end_ms, confidence }));
  return JSON.stringify({ language, words: shown });
}

/**
 * The times of the words of a WebVTT text that was edited, deflated, from those before. Null where it has none. `words`: of
 * `checkedWords`. Throws TooComplex.
 */
export function editedWords(text: string, words: Uint8Array): Uint8Array | null {
  const said = inflated(words).map(([word, startMs, endMs, confidence]) => ({
    text: word,
    startMs,
    endMs,
    confidence,
  }));
  const { cues } = runToEnd(parsing(text));
  const edited = runToEnd(realignedWords(cues, said));
  if (edited.length === 0 || edited.some((word) => word.text.length > MAX_WORD_CHARACTERS)) return null;
  const list: SpokenWords = edited.map(({ text: word, startMs, endMs, confidence }) =>
    confidence === undefined ? [word, startMs, endMs] : [word, startMs, endMs, confidence],
  );
  const json = JSON.stringify(list);
  return Buffer.byteLength(json) > MAX_WORDS_BYTES ? null : deflateSync(json);
}

const inflated = (words: Uint8Array): SpokenWords =>
  JSON.parse(inflateSync(words, { maxOutputLength: 2 * MAX_WORDS_BYTES }).toString("utf8"));
