/** Recognized speech, as every engine delivers it. Times are milliseconds of the audio. */

/** A word; in a script without spaces, a character or a few. `confidence` is 0 to 1, null when the engine has none. */
export type Word = { text: string; startMs: number; endMs: number; confidence: number | null };

/** What was said in one stretch. `words` is empty when the engine has no times of words. */
export type Utterance = Word & { words: readonly Word[] };

/** `language` is the BCP 47 tag that the engine detected; null when it detected none. */
export type Speech = { language: string | null; utterances: readonly Utterance[] };
