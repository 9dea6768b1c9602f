import * as v from "valibot";
import { runInSlices } from "../../lib/time-slices.ts";
import { type Cue, type Fault, parsing, withHeader } from "../../lib/vtt/parse.ts";
import { fromSrt, looksLikeSrt } from "../../lib/vtt/srt.ts";
import { type PlainCue, writeCue } from "../../lib/vtt/write.ts";
import { TranscriptionFailed } from "./transcriber.ts";

/** OpenAI's `verbose_json`, and what others answer alike: times in seconds. */
const Segments = v.object({
  segments: v.array(v.object({ start: v.number(), end: v.number(), text: v.string() })),
});
/** Recognisers emit cues that last no time at all; their texts mostly stand in the next one again. */
const INSTANT = /^(?:\d+[ \t]*\r?\n)?(\d[\d:.,]{4,19}) --> \1[ \t]*\r?\n(?:[^\r\n]+(?:\r?\n|$))*/gm;

/** Cues of a recogniser's answer, whichever of WebVTT, SubRip and JSON it is. None where nothing was said. */
export async function cuesOf(answer: string): Promise<PlainCue[]> {
  const text = answer.replace(/^\ufeff/, "").trim();
  if (text.startsWith("{")) return cuesOfJson(text);
  const timed = text.replace(INSTANT, "");
  if (timed.trim() === "") return [];
  if (timed.startsWith("WEBVTT")) return cuesOfVtt(timed);
  if (!looksLikeSrt(timed)) throw new TranscriptionFailed("The transcription is neither WebVTT nor SubRip.");
  const converted = await runInSlices(fromSrt(timed));
  requireNone(converted.faults);
  return cuesOfVtt(converted.text);
}

async function cuesOfVtt(text: string): Promise<PlainCue[]> {
  const { cues, faults } = await runInSlices(parsing(withHeader(text).text));
  requireNone(faults);
  return cues.map(plain);
}

const plain = ({ startMs, endMs, settings, text }: Cue): PlainCue => ({ id: null, startMs, endMs, settings, text });

function requireNone([fault]: readonly Fault[]): void {
  if (fault) throw new TranscriptionFailed(`The transcription cannot be read: line ${fault.line}: ${fault.message}.`);
}

function cuesOfJson(text: string): PlainCue[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new TranscriptionFailed("The transcription is no JSON.");
  }
  const parsed = v.safeParse(Segments, json);
  if (!parsed.success)
    throw new TranscriptionFailed("The transcription has no times; choose a model that tells them, such as whisper-1.");
  return parsed.output.segments.map(({ start, end, text: said }) => ({
    id: null,
    startMs: Math.round(start * 1000),
    endMs: Math.round(end * 1000),
    settings: "",
    text: said.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  }));
}

/**
 * Cues of a stretch of sound, later by its start and none beyond its end, where recognisers like to invent some.
 * Texts without blank lines, which would end them.
 */
export const placed = (cues: readonly PlainCue[], { startMs, endMs }: { startMs: number; endMs: number }): PlainCue[] =>
  cues.flatMap((cue) => {
    const text = cue.text
      .split(/\r\n|\n|\r/)
      .map((line) => line.trim())
      .filter(Boolean)
      .join("\n")
      .replaceAll("-->", "--&gt;");
    const from = Math.max(0, cue.startMs) + startMs;
    const to = Math.min(cue.endMs + startMs, endMs);
    return text === "" || from >= to ? [] : [{ ...cue, startMs: from, endMs: to, text }];
  });

/** Throws where there is none: nothing was said, or nothing was understood. */
export function vttOf(cues: readonly PlainCue[]): string {
  if (cues.length === 0) throw new TranscriptionFailed("No speech was recognised.");
  const sorted = cues.toSorted((one, other) => one.startMs - other.startMs);
  return `WEBVTT\n\n${sorted.map((cue) => `${writeCue(cue)}\n`).join("\n")}`;
}
