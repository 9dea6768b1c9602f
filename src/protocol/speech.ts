import * as v from "valibot";
import { MAX_MEDIA_SECONDS } from "./task.ts";

/**
 * Jobs that recognize the speech of an asset that is ready. A worker that has an engine for it claims them with the lane
 * `captions`; with `capabilities: {captions: 1}` in the lane `main`, when nothing else is queued. Their contract has `speech`,
 * and `join` with the asset's media, of which the worker reads one audio rendition; it has no source. The worker writes WebVTT
 * to `speech.path`.
 *
 * Long audio is recognized in parts, by all workers that announce version 2. One divides it (`speech.step` is `plan`), each
 * recognizes parts (`part`), and one joins what was recognized (`join`). Without `step` a worker recognizes all of it.
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
export const CAPTIONS_VERSION = 2;
/** The first one: workers recognize all of an asset's speech. */
export const FIRST_CAPTIONS_VERSION = 1;
/** The one from which on workers recognize parts. */
export const PARTS_VERSION = 2;

/** Longer audio is recognized in parts, in ms: where several workers save more than dividing and joining take. */
export const PARTS_FROM_MS = 120_000;
/** What is recognized before and after a part, so that a word at a cut is whole in one of the parts. */
export const PART_OVERLAP_MS = 1000;
/** More than a day of audio has in parts of 40 s. */
export const MAX_PARTS = 3000;
/** Bytes of the JSON of what is said in a part: a minute of fast speech has a tenth of it. */
export const MAX_PART_BYTES = 2 ** 18;

const Language = v.nullable(v.pipe(v.string(), v.maxLength(100)));

const Milliseconds = v.pipe(
  v.number("must be a number"),
  v.safeInteger("must be a whole number"),
  v.minValue(0, "must not be negative"),
  v.maxValue(MAX_MEDIA_SECONDS * 1000, `must be at most ${MAX_MEDIA_SECONDS * 1000}`),
  v.description("Milliseconds of the asset"),
);
const PartTimes = v.object({ start_ms: Milliseconds, end_ms: Milliseconds });
export type PartTimes = v.InferOutput<typeof PartTimes>;

/** The parts of long audio, in order. Without any, nothing is heard. */
export const SpeechPlan = v.pipe(
  v.array(PartTimes, "must be an array of parts"),
  v.maxLength(MAX_PARTS, `must have at most ${MAX_PARTS} parts`),
  v.check(
    (parts) => parts.every(({ start_ms, end_ms }, at) => start_ms < end_ms && start_ms >= (parts[at - 1]?.end_ms ?? 0)),
    "must have parts in order that do not overlap",
  ),
  v.description("The parts of the audio, the result of the step `plan`; none: nothing is heard"),
);

const Share = v.nullable(v.pipe(v.number(), v.minValue(0), v.maxValue(1)));
const MAX_UTTERANCE_CHARACTERS = 20_000;
const MAX_UTTERANCES = 1000;
const MAX_WORDS = 5000;
const Said = {
  text: v.pipe(v.string(), v.maxLength(MAX_UTTERANCE_CHARACTERS), v.description("What is said")),
  start_ms: Milliseconds,
  end_ms: Milliseconds,
  confidence: v.pipe(Share, v.description("0 to 1; null where the engine does not say")),
};
const SaidUtterance = v.object({
  ...Said,
  words: v.pipe(
    v.array(v.object(Said)),
    v.maxLength(MAX_WORDS),
    v.description("Empty when the engine has no times of words"),
  ),
});

/** What was recognized in a part; times are those of the asset. */
export const PartSpeech = v.object({
  language: v.pipe(Language, v.description("A BCP 47 tag that was detected; null without detection")),
  audio_language: v.pipe(v.optional(Language, null), v.description("What the audio rendition declares")),
  utterances: v.pipe(
    v.array(SaidUtterance),
    v.maxLength(MAX_UTTERANCES),
    v.description("What is said, in milliseconds of the asset; none: nothing"),
  ),
});
export type PartSpeech = v.InferOutput<typeof PartSpeech>;

/** A page of what was recognized in the parts. */
export const PartPage = v.object({
  parts: v.pipe(
    v.array(v.object({ ...PartTimes.entries, ...PartSpeech.entries })),
    v.description("In the order of their times"),
  ),
  next: v.pipe(v.nullable(v.string()), v.description("The URL of the next page; null: this is the last")),
});
export type PartPage = v.InferOutput<typeof PartPage>;

export const SpeechWork = v.object({
  language: v.pipe(Language, v.description("A BCP 47 tag; null: to detect")),
  requested_language: v.pipe(
    v.optional(Language),
    v.description(
      "Of a part: the language in which the audio rendition is chosen, where `language` was detected in other parts; null: none was requested",
    ),
  ),
  path: v.pipe(v.string(), v.description("Object key of the captions")),
  words_path: v.pipe(
    v.nullish(v.string()),
    v.description("Object key of the times of the words, if the engine has them; null: not wanted"),
  ),
  step: v.pipe(
    v.nullish(v.picklist(["plan", "part", "join"])),
    v.description(
      "For workers with `capabilities.captions` 2. `plan`: divide the audio, write nothing; `part`: recognize `part`, write nothing; `join`: join the parts of `parts_url`; null: recognize all",
    ),
  ),
  part: v.pipe(v.nullish(PartTimes), v.description("Words between these times belong to the part")),
  parts_url: v.pipe(v.nullish(v.string()), v.description("What was recognized in the parts, page by page")),
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
