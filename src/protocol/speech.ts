import * as v from "valibot";

/**
 * Jobs that recognize the speech of an asset that is ready. A worker that has an engine for it claims them with the lane
 * `captions`; with `capabilities: {captions: 1}` in the lane `main`, when nothing else is queued. Their contract has `speech`,
 * and `join` with the asset's media, of which the worker reads one audio rendition; it has no source. The worker writes WebVTT
 * to `speech.path`.
 */

/** Where the times of the words of captions are, next to them. */
export const wordsPathOf = (captionsPath: string): string => `${captionsPath.replace(/\.vtt$/, "")}.words.json`;

/** Bytes of the times of words: those of two days of speech. */
export const MAX_WORDS_BYTES = 8 * 2 ** 20;

/** Longer ones are none: an engine may join what it hears in one breath. */
export const MAX_WORD_CHARACTERS = 200;

/**
 * Words in the order in which they are said, with their start and end in ms, as JSON. `confidence` is 0 to 1, absent
 * where the engine does not say.
 */
export type SpokenWords = readonly (readonly [text: string, startMs: number, endMs: number, confidence?: number])[];

/** The version of this protocol, as workers announce it in `capabilities.captions`. */
export const CAPTIONS_VERSION = 1;

const Language = v.nullable(v.pipe(v.string(), v.maxLength(100)));

export const SpeechWork = v.object({
  language: v.pipe(Language, v.description("A BCP 47 tag; null: to detect")),
  path: v.pipe(v.string(), v.description("Object key of the captions")),
  words_path: v.pipe(
    v.nullish(v.string()),
    v.description("Object key of the times of the words, if the engine has them; null: not wanted"),
  ),
});
export type SpeechWork = v.InferOutput<typeof SpeechWork>;

export const SpeechResult = v.object({
  language: v.pipe(Language, v.description("A BCP 47 tag that was detected; null without detection")),
  audio_language: v.pipe(v.optional(Language, null), v.description("What the audio rendition declares")),
  confidence: v.pipe(
    v.optional(v.nullable(v.pipe(v.number(), v.minValue(0), v.maxValue(1))), null),
    v.description("0 to 1; null where the engine does not say"),
  ),
});
export type SpeechResult = v.InferOutput<typeof SpeechResult>;
