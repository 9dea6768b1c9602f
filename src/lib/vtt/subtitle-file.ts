import { runToEnd } from "../sliced.ts";
import { decodeText } from "./decode.ts";
import { type Fault, parsing, withHeader } from "./parse.ts";
import { fromSrt, looksLikeSrt } from "./srt.ts";

/** A WebVTT text to store, or the reason for a refusal: a sentence, or the faulty lines. */
export type CheckedSubtitle = { text: string } | { message: string } | { faults: Fault[] };

/** Checks a WebVTT text and adds a missing header. Throws TooComplex. */
export function checkVtt(content: string): CheckedSubtitle {
  if (content.includes("\0")) return { message: "must not contain a NUL character" };
  if (!content.isWellFormed()) return { message: "must be well-formed Unicode" };
  const { text, addedLines } = withHeader(content.replace(/^\ufeff/, ""));
  const { cues, faults } = runToEnd(parsing(text, addedLines));
  if (faults.length > 0) return { faults };
  return cues.length === 0 ? { message: "must contain at least one cue" } : { text };
}

/**
 * Converts a file to WebVTT; the format is detected by file name, else by content. SubRip is converted. Throws
 * TooComplex.
 */
export function checkSubtitleFile({ filename, bytes }: { filename: string; bytes: Uint8Array }): CheckedSubtitle {
  const decoded = decodeText(bytes);
  if ("fault" in decoded) return { message: `cannot be read: ${decoded.fault}` };
  const { text } = decoded;
  const extension = /\.(vtt|srt)$/i.exec(filename)?.[1]?.toLowerCase();
  const isSrt = !text.startsWith("WEBVTT") && (extension === "srt" || (!extension && looksLikeSrt(text)));
  if (!isSrt) return checkVtt(text);
  const converted = runToEnd(fromSrt(text));
  return converted.faults.length > 0 ? { faults: converted.faults } : checkVtt(converted.text);
}
