import { DOCUMENT_LIMITS, requireAtMost, type Sliced } from "#lib/base/web";
import { Lines } from "./lines.ts";
import { cueSettingsFault, regionSettingsFault } from "./settings.ts";
import { readTime } from "./time.ts";

/** A fault, and its line in the client's original text, counted from 1. */
export type Fault = { line: number; message: string };
/** Offsets into the text, in UTF-16 code units; `to` is exclusive. */
export type Span = { from: number; to: number };

export type Cue = {
  id: string | null;
  startMs: number;
  endMs: number;
  /** The settings after the times; empty for none. */
  settings: string;
  /** The payload, its lines joined by LF. */
  text: string;
  /** Line of the cue timings. */
  line: number;
  /** Positions of the two timestamps: re-timing a cue replaces only these. */
  startAt: Span;
  endAt: Span;
  /** Position of the payload, without the terminator of its last line. */
  textAt: Span;
};
export type Vtt = { cues: Cue[]; faults: Fault[] };

const LINES_PER_SLICE = 500;
const ARROW = "-->";

const hasHeader = (text: string) => /^WEBVTT(?:[ \t\r\n]|$)/.test(text);

/** Adds the header that WebVTT (4.1) requires. Returns the text and the number of added lines. */
export function withHeader(text: string): { text: string; addedLines: number } {
  if (hasHeader(text)) return { text, addedLines: 0 };
  const terminator = /\r\n|\n|\r/.exec(text)?.[0] ?? "\n";
  return { text: `WEBVTT${terminator}${terminator}${text}`, addedLines: 2 };
}

const quote = (text: string) => `"${text.length > 40 ? `${text.slice(0, 40)}…` : text}"`;

/**
 * Parses a WebVTT file (W3C WebVTT, 4.1 to 4.5) and reports faults of the header, blocks, timing lines and settings.
 * Cues may overlap and may be in any order; markup in payloads is not checked. Linear in time; stops after a fixed
 * number of faults. Throws TooComplex. Lines added by `withHeader` (`addedLines`) are not counted in line numbers.
 */
export function* parsing(source: string, addedLines = 0): Sliced<Vtt> {
  const lines = new Lines(source, 1 - addedLines);
  const cues: Cue[] = [];
  const faults: Fault[] = [];
  const fault = (message: string, line = lines.number) => {
    if (faults.length < DOCUMENT_LIMITS.faults) faults.push({ line, message });
  };
  /**
   * Reads the lines of a block. A line with an arrow belongs to the next block, and is a fault where a blank line is
   * missing.
   */
  function* rest(missingBlank: string, each?: (line: string) => void): Sliced<void> {
    for (; lines.text !== "" && !lines.ended; lines.advance()) {
      if (lines.text.includes(ARROW)) {
        fault(missingBlank);
        return;
      }
      each?.(lines.text);
      if (lines.number % LINES_PER_SLICE === 0) yield;
    }
  }

  /** Reads a comment, style or region, which begins with `first`; false for another block. */
  function* otherBlock(first: string, firstLine: number): Sliced<boolean> {
    if (/^NOTE(?:[ \t]|$)/.test(first)) {
      yield* rest("a comment must not contain an arrow, and ends with a blank line");
      return true;
    }
    const kind = /^(STYLE|REGION)[ \t]*$/.exec(first)?.[1];
    if (!kind) return false;
    if (cues.length > 0) fault(`${kind} must precede the first cue`, firstLine);
    const seen = new Set<string>();
    yield* rest(`a ${kind} block must not contain an arrow, and ends with a blank line`, (line) => {
      const wrong = kind === "REGION" ? regionSettingsFault(line, seen) : null;
      if (wrong) fault(wrong);
    });
    return true;
  }

  if (!hasHeader(source)) fault("the file must begin with WEBVTT");
  else if (lines.text.includes(ARROW)) fault("the header must not contain an arrow");
  lines.advance();
  yield* rest("a blank line is required between the header and the first cue");

  while (!lines.ended && faults.length < DOCUMENT_LIMITS.faults) {
    if (lines.number % LINES_PER_SLICE === 0) yield;
    const first = lines.text;
    if (first === "") {
      lines.advance();
      continue;
    }
    const hasId = !first.includes(ARROW);
    if (hasId) {
      const firstLine = lines.number;
      lines.advance();
      if (yield* otherBlock(first, firstLine)) continue;
      if (!lines.text.includes(ARROW)) {
        fault(`${quote(first)} has no timing line below it`, firstLine);
        while (lines.text !== "" && !lines.text.includes(ARROW) && !lines.ended) lines.advance();
        continue;
      }
    }
    const timing = readTiming(lines);
    if (typeof timing === "string") fault(timing);
    const line = lines.number;
    lines.advance();
    const textAt = { from: lines.from, to: lines.from };
    const text: string[] = [];
    yield* rest("a blank line is missing before this cue, or text contains an arrow (write it as --&gt;)", (one) => {
      text.push(one);
      textAt.to = lines.to;
    });
    if (typeof timing === "string") continue;
    if (lines.ended && text.length === 0) textAt.from = textAt.to = source.length;
    requireAtMost(cues.length + 1, DOCUMENT_LIMITS.cues, "cues");
    cues.push({ id: hasId ? first : null, ...timing, text: text.join("\n"), line, textAt });
  }
  return { cues, faults };
}

type Timing = Pick<Cue, "startMs" | "endMs" | "settings" | "startAt" | "endAt">;

/**
 * WebVTT, 4.1: time, whitespace, arrow, whitespace, time, and settings after whitespace. A string describes the fault.
 */
function readTiming({ text, from }: Lines): Timing | string {
  const arrow = text.indexOf(ARROW);
  const start = trimBlanks(text.slice(0, arrow));
  const behind = text.slice(arrow + ARROW.length);
  const right = trimBlanks(behind);
  const [end = ""] = right.split(/[ \t]/, 1);
  for (const time of [start, end]) {
    if (time === "") return "a timing line must hold two times with --> between them";
    if (readTime(time) !== null) continue;
    return /^(\d+:)?\d+:\d+,\d+$/.test(time)
      ? `the time ${quote(time)} must have a point before the milliseconds, as in 00:00:01.000`
      : `${quote(time)} is not a time; write it as 00:00:01.000, with minutes and seconds up to 59`;
  }
  if (!/^[^ \t].*[ \t]$/s.test(text.slice(0, arrow)) || !/^[ \t]/.test(behind))
    return "a timing line begins with its first time, and has a space before and after -->";
  const startMs = readTime(start) as number;
  const endMs = readTime(end) as number;
  if (startMs >= endMs) return "the cue must end after it starts";
  const settings = trimBlanks(right.slice(end.length));
  const wrong = cueSettingsFault(settings);
  if (wrong) return wrong;
  const endFrom = from + arrow + ARROW.length + behind.indexOf(end);
  return {
    startMs,
    endMs,
    settings,
    startAt: { from, to: from + start.length },
    endAt: { from: endFrom, to: endFrom + end.length },
  };
}

/** `trim` removes more than the whitespace of WebVTT, and a regular expression takes quadratic time. */
function trimBlanks(text: string): string {
  const isBlank = (at: number) => text[at] === " " || text[at] === "\t";
  let from = 0;
  let to = text.length;
  while (from < to && isBlank(from)) from++;
  while (to > from && isBlank(to - 1)) to--;
  return text.slice(from, to);
}
