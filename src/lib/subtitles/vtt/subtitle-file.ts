import { runToEnd } from "#lib/base";
import { fromTtml, looksLikeTtml } from "../ttml/from-ttml.ts";
import { decodeText } from "./decode.ts";
import { type Fault, parsing, withHeader } from "./parse.ts";
import { repairing } from "./repair.ts";
import { type SkippedCue, type SubtitleWarning, skippedWarnings } from "./skipped.ts";
import { fromSrt, looksLikeSrt } from "./srt.ts";

/** A WebVTT text to store. */
export type CheckedText = { text: string; warnings: SubtitleWarning[] };
/** The text, or the reason for a refusal: a sentence, or the faulty lines. */
export type CheckedSubtitle = CheckedText | { message: string } | { faults: Fault[] };

/**
 * Checks a WebVTT text, repairs small faults, and adds a missing header. Throws TooComplex.
 * @example
 * checkVtt("WEBVTT\n\n00:02.000 --> 00:01.000\nHello").faults // => [{ line: 3, message: "the cue must end after it starts" }]
 */
export function checkVtt(content: string): CheckedSubtitle {
  if (content.includes("\0")) return { message: "must not contain a NUL character" };
  if (!content.isWellFormed()) return { message: "must be well-formed Unicode" };
  const repaired = runToEnd(repairing(content.replace(/^\ufeff/, "")));
  const { text, addedLines } = withHeader(repaired.text);
  const { cues, faults } = runToEnd(parsing(text, addedLines));
  if (faults.length > 0)
    return { faults: faults.map(({ line, message }) => ({ line: repaired.sourceLine(line), message })) };
  return cues.length === 0 ? withoutCues(repaired.skipped) : { text, warnings: skippedWarnings(repaired.skipped) };
}

/**
 * Converts a file to WebVTT. SubRip is converted: a file without the signature of WebVTT that is named `.srt`, or that has
 * the times of SubRip. XML is TTML, whatever its name is. Throws TooComplex.
 */
export function checkSubtitleFile({ filename, bytes }: { filename: string; bytes: Uint8Array }): CheckedSubtitle {
  const decoded = decodeText(bytes);
  if ("fault" in decoded) return { message: `cannot be read: ${decoded.fault}` };
  const { text } = decoded;
  if (looksLikeTtml(text)) return converted(runToEnd(fromTtml(text)));
  const isSrt = !/^\s*WEBVTT/i.test(text) && (/\.srt$/i.test(filename) || looksLikeSrt(text));
  return isSrt ? converted(runToEnd(fromSrt(text))) : checkVtt(text);
}

type Converted = { text: string; faults: Fault[]; skipped: SkippedCue[] };

function converted({ text, faults, skipped }: Converted): CheckedSubtitle {
  if (faults.length > 0) return { faults };
  if (!text.isWellFormed()) return { message: "must be well-formed Unicode" };
  // What players would not accept is not stored.
  const result = runToEnd(parsing(text));
  if (result.faults.length > 0) return { faults: result.faults };
  return result.cues.length === 0 ? withoutCues(skipped) : { text, warnings: skippedWarnings(skipped) };
}

function withoutCues(skipped: readonly SkippedCue[]): { message: string } {
  const [left] = skippedWarnings(skipped);
  return { message: `must contain at least one cue${left ? `; ${left.message.replace(/\.$/, "")}` : ""}` };
}
