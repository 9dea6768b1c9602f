import * as v from "valibot";
import { runInSlices } from "../../lib/time-slices.ts";
import { type Cue, type Fault, parsing, withHeader } from "../../lib/vtt/parse.ts";
import { repairing } from "../../lib/vtt/repair.ts";
import { fromSrt, looksLikeSrt } from "../../lib/vtt/srt.ts";
import { type PlainCue, writeCue } from "../../lib/vtt/write.ts";
import { TranscriptionFailed } from "./transcriber.ts";

/** OpenAI's `verbose_json` and compatible responses: times in seconds. */
const Segments = v.object({
  segments: v.array(v.object({ start: v.number(), end: v.number(), text: v.string() })),
});
/**
 * The cues of a response in WebVTT, SubRip or JSON. Empty when nothing was said. Speech recognition emits cues without
 * duration, which are left out; their text is usually repeated in the next one.
 */
export async function cuesOf(answer: string): Promise<PlainCue[]> {
  const text = answer.replace(/^\ufeff/, "").trim();
  if (text.startsWith("{")) return cuesOfJson(text);
  if (text === "") return [];
  if (text.startsWith("WEBVTT")) return cuesOfVtt(text);
  if (!looksLikeSrt(text)) throw new TranscriptionFailed("The transcription is neither WebVTT nor SubRip.");
  const converted = await runInSlices(fromSrt(text));
  requireNone(converted.faults);
  return cuesOfVtt(converted.text);
}

async function cuesOfVtt(text: string): Promise<PlainCue[]> {
  const repaired = await runInSlices(repairing(text));
  const { cues, faults } = await runInSlices(parsing(withHeader(repaired.text).text));
  requireNone(faults.map(({ line, message }) => ({ line: repaired.sourceLine(line), message })));
  return cues.map(plain);
}

const plain = ({ startMs, endMs, settings, text }: Cue): PlainCue => ({ id: null, startMs, endMs, settings, text });

function requireNone([fault]: readonly Fault[]): void {
  if (fault) throw new TranscriptionFailed(`The transcription is invalid: line ${fault.line}: ${fault.message}.`);
}

function cuesOfJson(text: string): PlainCue[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new TranscriptionFailed("The transcription is not valid JSON.");
  }
  const parsed = v.safeParse(Segments, json);
  if (!parsed.success)
    throw new TranscriptionFailed(
      "The transcription has no timestamps; use a model that returns them, such as whisper-1.",
    );
  return parsed.output.segments.map(({ start, end, text: said }) => ({
    id: null,
    startMs: Math.round(start * 1000),
    endMs: Math.round(end * 1000),
    settings: "",
    text: said.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  }));
}

/**
 * The cues of an audio section, shifted by its start and clipped at its end, after which recognition tends to invent
 * some. Texts without blank lines, which would end a cue.
 */
export const shifted = (
  cues: readonly PlainCue[],
  { startMs, endMs }: { startMs: number; endMs: number },
): PlainCue[] =>
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

/** Throws when there are none: nothing was said, or nothing was recognized. */
export function vttOf(cues: readonly PlainCue[]): string {
  if (cues.length === 0) throw new TranscriptionFailed("No speech was recognized.");
  const sorted = cues.toSorted((one, other) => one.startMs - other.startMs);
  return `WEBVTT\n\n${sorted.map((cue) => `${writeCue(cue)}\n`).join("\n")}`;
}
