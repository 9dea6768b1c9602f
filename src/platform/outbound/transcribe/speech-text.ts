import { MAX_SUBTITLE_BYTES, runInSlices } from "#lib/base";
import { escapeText, shapedCues, spokenCues, writeCue } from "#lib/subtitles";
import { MAX_WORD_CHARACTERS, MAX_WORDS_BYTES, type SpokenWords } from "#protocol/speech.ts";
import type { Speech } from "./speech.ts";
import { TranscriptionFailed } from "./transcriber.ts";

const CUES_PER_SLICE = 500;

/** Nothing was said, or nothing was recognized. */
export class NoSpeech extends TranscriptionFailed {
  constructor() {
    super("No speech was recognized.");
  }
}

/** A day of fast speech, or half a day in a script of several bytes, is more than a subtitle may have. */
export class CaptionsTooLarge extends TranscriptionFailed {
  constructor() {
    super(`The captions have over ${MAX_SUBTITLE_BYTES} bytes.`);
  }
}

/** Recognized speech as WebVTT with cues of a readable shape. Throws NoSpeech and CaptionsTooLarge. */
export async function vttOfSpeech({ utterances }: Pick<Speech, "utterances">): Promise<string> {
  const sorted = utterances.toSorted((one, other) => one.startMs - other.startMs);
  const text = await runInSlices(
    (function* () {
      const cues = yield* shapedCues(sorted);
      if (cues.length === 0) throw new NoSpeech();
      const blocks: string[] = [];
      for (const [index, { startMs, endMs, lines }] of cues.entries()) {
        if (index % CUES_PER_SLICE === 0) yield;
        const text = lines.map(escapeText).join("\n");
        blocks.push(`${writeCue({ id: null, startMs, endMs, settings: "", text })}\n`);
      }
      return `WEBVTT\n\n${blocks.join("\n")}`;
    })(),
  );
  if (Buffer.byteLength(text) > MAX_SUBTITLE_BYTES) throw new CaptionsTooLarge();
  return text;
}

/** WebVTT without markup with cues of a readable shape again, after its text has changed; unchanged where that is not possible. */
export async function reshapedVtt(text: string): Promise<string> {
  const cues = await runInSlices(spokenCues(text));
  const none = { confidence: null, words: [] };
  const utterances = cues.map((cue) => ({ text: cue.text, startMs: cue.start_ms, endMs: cue.end_ms, ...none }));
  try {
    return await vttOfSpeech({ utterances });
  } catch (error) {
    if (error instanceof TranscriptionFailed) return text;
    throw error;
  }
}

/**
 * The times of the words as JSON (`SpokenWords`); null where the engine has none for a part of the speech, or they are too
 * large.
 */
export function wordsOf({ utterances }: Pick<Speech, "utterances">): string | null {
  const spoken = utterances.filter(({ text }) => text.trim() !== "");
  if (spoken.length === 0 || spoken.some(({ words }) => words.length === 0)) return null;
  const words: SpokenWords = spoken
    .flatMap((utterance) => utterance.words.map((word) => ({ ...word, ofUtterance: utterance.confidence })))
    .flatMap(({ text, startMs, endMs, confidence, ofUtterance }): SpokenWords => {
      const word = text.trim();
      if (word === "") return [];
      const from = Math.max(0, Math.round(startMs));
      const to = Math.max(from, Math.round(endMs));
      const share = confidence ?? ofUtterance;
      return [share === null ? [word, from, to] : [word, from, to, Math.round(share * 100) / 100]];
    })
    .toSorted(([, one], [, other]) => one - other);
  if (words.some(([text]) => text.length > MAX_WORD_CHARACTERS)) return null;
  const json = JSON.stringify(words);
  return Buffer.byteLength(json) > MAX_WORDS_BYTES ? null : json;
}

/** 0 to 1: of the words, or of utterances without words, weighted by their length; null when the engine states none. */
export function confidenceOf({ utterances }: Pick<Speech, "utterances">): number | null {
  let sum = 0;
  let weight = 0;
  for (const utterance of utterances)
    for (const { confidence, text } of utterance.words.some((word) => word.confidence !== null)
      ? utterance.words
      : [utterance]) {
      if (confidence === null) continue;
      sum += confidence * text.length;
      weight += text.length;
    }
  return weight === 0 ? null : Math.round((sum / weight) * 1000) / 1000;
}
