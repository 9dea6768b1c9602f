import { DOCUMENT_LIMITS, requireAtMost } from "../document-limits.ts";
import type { Sliced } from "../sliced.ts";
import { Lines } from "./lines.ts";
import type { Fault } from "./parse.ts";
import { fromSrtMarkup } from "./srt-markup.ts";
import { millis } from "./time.ts";
import { type PlainCue, writeCue } from "./write.ts";

const LINES_PER_SLICE = 500;
const ARROW = "(?:-{1,3}>|[–—]>|→)";
const TIME = "(?:(\\d{1,5}):)?(\\d{1,2}):(\\d{1,2})(?:[.,:](\\d{1,9}))?";
const TIMING = new RegExp(`^${TIME}\\s*${ARROW}\\s*${TIME}(?=\\s|$)`);
/** Looks like a timing line, even if it is malformed. */
const LIKE_TIMING = new RegExp(`^\\d{1,5}:[^ ]{0,20} {0,20}${ARROW}|^${TIME}(?:\\s|$).{0,40}${ARROW}`);
const LONGEST_TIMING = 300;
/** More than a screen holds; bounds the cost of a file that is a single cue. */
const LONGEST_TEXT = 10_000;

type Open = { startMs: number; endMs: number; lines: string[]; characters: number };

/**
 * Converts SubRip to WebVTT, with the deviations found in real files: any arrow, comma or point, missing milliseconds
 * and hours, missing or repeated numbers, missing blank lines before a timing line, and blank lines in texts. There is
 * no standard; ambiguous input is a fault. Cues are sorted by start, as WebVTT (4.1) requires.
 */
export function* fromSrt(source: string): Sliced<{ text: string; faults: Fault[] }> {
  const faults: Fault[] = [];
  const cues: PlainCue[] = [];
  let open: Open | null = null;
  let lastNumber = 0;
  /** The last line read, which may be the number of the next cue; the following line decides. */
  let pending: { text: string; line: number; afterBlank: boolean } | null = null;
  let afterBlank = true;

  const release = () => {
    if (!pending) return;
    const { text, line } = pending;
    if (open && pending.afterBlank && Number(text) === lastNumber + 1)
      faults.push({ line, message: `cue ${text.slice(0, 9)} has no timing line` });
    else take(text, line);
    pending = null;
  };
  const take = (text: string, line: number) => {
    if (open) {
      const before = open.characters;
      open.characters += text.length + 1;
      if (open.characters <= LONGEST_TEXT) open.lines.push(text);
      else if (before <= LONGEST_TEXT)
        faults.push({ line, message: `the text of a cue must have at most ${LONGEST_TEXT} characters` });
    } else if (faults.length === 0) faults.push({ line, message: "text precedes the first timing line" });
  };
  const finish = () => {
    if (!open) return;
    const { startMs, endMs } = open;
    requireAtMost(cues.length + 1, DOCUMENT_LIMITS.cues, "cues");
    const { text, top } = fromSrtMarkup(open.lines.join("\n"));
    if (text !== "" && startMs < endMs) cues.push({ id: null, startMs, endMs, settings: top ? "line:0" : "", text });
  };

  for (const lines = new Lines(source); !lines.ended && faults.length < DOCUMENT_LIMITS.faults; lines.advance()) {
    if (lines.number % LINES_PER_SLICE === 0) yield;
    const text = lines.text.trim();
    if (text === "") {
      // A lone number above a blank line is not a cue number but text.
      if (pending && !pending.afterBlank) release();
      afterBlank = true;
      continue;
    }
    const timing = text.length <= LONGEST_TIMING ? readTiming(text) : null;
    if (timing) {
      if (pending) lastNumber = Number(pending.text);
      else lastNumber++;
      pending = null;
      finish();
      yield;
      if (typeof timing === "string") {
        faults.push({ line: lines.number, message: timing });
        open = { startMs: 0, endMs: 0, lines: [], characters: 0 };
      } else open = { ...timing, lines: [], characters: 0 };
    } else {
      release();
      if (/^\d{1,9}$/.test(text)) pending = { text, line: lines.number, afterBlank };
      else take(text, lines.number);
    }
    afterBlank = false;
  }
  release();
  finish();
  cues.sort((one, other) => one.startMs - other.startMs);
  yield;
  const blocks: string[] = ["WEBVTT"];
  for (const [index, cue] of cues.entries()) {
    if (index % LINES_PER_SLICE === 0) yield;
    blocks.push(writeCue(cue));
  }
  return { text: `${blocks.join("\n\n")}\n`, faults };
}

/** Null for a text line. A string describes the fault of a timing line. Coordinates after the times are dropped. */
function readTiming(text: string): { startMs: number; endMs: number } | string | null {
  const match = TIMING.exec(text);
  if (!match) return LIKE_TIMING.test(text) ? "a timing line must look like 00:00:01,000 --> 00:00:02,000" : null;
  const behind = text.slice(match[0].length).trim();
  if (behind !== "" && !/^(?:[XYxy][12]:-?\d{1,6}\s*)+$/.test(behind))
    return "behind the times of a timing line there must be nothing but coordinates";
  const [start, end] = [match.slice(1, 5), match.slice(5, 9)].map(([hours, minutes, seconds, fraction = ""]) =>
    millis(hours, minutes, seconds, fraction.slice(0, 3).padEnd(3, "0")),
  );
  if (start == null || end == null) return "minutes and seconds of a timing line must be at most 59";
  return start < end ? { startMs: start, endMs: end } : "the cue must end after it starts";
}

/** Detects SubRip in a file without a known extension: its times have commas. */
export const looksLikeSrt = (source: string) =>
  new RegExp(`^\\s*(?:\\d{1,9}\\s+)?\\d{1,5}:\\d{1,2}:\\d{1,2},\\d{1,3}\\s*${ARROW}`).test(source);
