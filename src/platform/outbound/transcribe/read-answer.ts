import * as v from "valibot";
import { canonicalLanguage, languageOfName, runInSlices } from "#lib/base";
import { type Cue, type Fault, fromSrt, looksLikeSrt, parsing, plainText, repairing, withHeader } from "#lib/subtitles";
import type { Speech, Utterance, Word } from "./speech.ts";
import { TranscriptionFailed } from "./transcriber.ts";

const Probability = v.nullish(v.number());
/** OpenAI has words in a list of their own, whisper.cpp's server in their segment. Times in seconds. */
const Words = v.optional(
  v.array(v.object({ word: v.string(), start: v.number(), end: v.number(), probability: Probability })),
  [],
);
/** OpenAI's `verbose_json` and compatible responses. */
const Answer = v.object({
  language: v.nullish(v.string()),
  segments: v.array(
    v.object({
      start: v.number(),
      end: v.number(),
      text: v.string(),
      words: Words,
      avg_logprob: Probability,
      no_speech_prob: Probability,
    }),
  ),
  words: Words,
});
type Segment = v.InferOutput<typeof Answer>["segments"][number];

/** Whisper's own limits, above and below which a segment is silence (openai/whisper, `transcribe.py`). */
const NO_SPEECH = { probability: 0.6, logProbability: -1 };

/**
 * The speech in a response in WebVTT, SubRip or JSON; without utterances when nothing was said. Speech recognition emits cues
 * without duration, which are left out; their text is usually repeated in the next one. Throws TranscriptionFailed.
 */
export async function readAnswer(answer: string): Promise<Speech> {
  const text = answer.replace(/^\ufeff/, "").trim();
  if (text.startsWith("{")) return speechOfJson(text);
  if (text === "") return { language: null, utterances: [] };
  if (text.startsWith("WEBVTT")) return speechOfVtt(text);
  if (!looksLikeSrt(text)) throw new TranscriptionFailed("The transcription is neither WebVTT nor SubRip.");
  const converted = await runInSlices(fromSrt(text));
  requireNone(converted.faults);
  return speechOfVtt(converted.text);
}

async function speechOfVtt(text: string): Promise<Speech> {
  const repaired = await runInSlices(repairing(text));
  const { cues, faults } = await runInSlices(parsing(withHeader(repaired.text).text));
  requireNone(faults.map(({ line, message }) => ({ line: repaired.sourceLine(line), message })));
  return { language: null, utterances: cues.map(utteranceOf) };
}

const utteranceOf = ({ startMs, endMs, text }: Pick<Cue, "startMs" | "endMs" | "text">): Utterance => ({
  text: plainText(text),
  startMs,
  endMs,
  confidence: null,
  words: [],
});

function requireNone([fault]: readonly Fault[]): void {
  if (fault) throw new TranscriptionFailed(`The transcription is invalid: line ${fault.line}: ${fault.message}.`);
}

function speechOfJson(text: string): Speech {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new TranscriptionFailed("The transcription is not valid JSON.");
  }
  const parsed = v.safeParse(Answer, json);
  if (!parsed.success)
    throw new TranscriptionFailed(
      "The transcription has no timestamps; use a model that returns them, such as whisper-1.",
    );
  const { language, segments, words } = parsed.output;
  const rest = words.map(wordOf);
  let used = 0;
  const utterances: Utterance[] = [];
  for (const [index, segment] of segments.entries()) {
    const endMs = ms(segment.end);
    const from = used;
    const isLast = index === segments.length - 1;
    while (used < rest.length && (isLast || (rest[used] as Word).startMs < endMs)) used++;
    const own = segment.words.length > 0 ? segment.words.map(wordOf) : rest.slice(from, used);
    if (isSilence(segment)) continue;
    const confidence = segment.avg_logprob == null ? null : between0And1(Math.exp(segment.avg_logprob));
    utterances.push({ text: segment.text, startMs: ms(segment.start), endMs, confidence, words: own });
  }
  return { language: language == null ? null : (canonicalLanguage(language) ?? languageOfName(language)), utterances };
}

const ms = (seconds: number) => Math.round(seconds * 1000);
const between0And1 = (value: number) => Math.min(1, Math.max(0, value));

const wordOf = ({ word, start, end, probability }: v.InferOutput<typeof Words>[number]): Word => ({
  text: word,
  startMs: ms(start),
  endMs: ms(end),
  confidence: probability == null ? null : between0And1(probability),
});

const isSilence = ({ avg_logprob: log, no_speech_prob: silence }: Segment) =>
  silence != null && log != null && silence > NO_SPEECH.probability && log < NO_SPEECH.logProbability;

/**
 * The utterances of an audio section, shifted by its start and clipped at its end, after which recognition tends to invent
 * some.
 */
export const shifted = (
  utterances: readonly Utterance[],
  { startMs, endMs }: { startMs: number; endMs: number },
): Utterance[] => {
  const move = <W extends Word>(one: W): W => ({
    ...one,
    startMs: Math.max(0, one.startMs) + startMs,
    endMs: Math.min(one.endMs + startMs, endMs),
  });
  return utterances.flatMap((one) => {
    const moved = move(one);
    const isEmpty = moved.startMs >= moved.endMs || (one.text.trim() === "" && one.words.length === 0);
    return isEmpty ? [] : [{ ...moved, words: one.words.map(move) }];
  });
};
