import { DOCUMENT_LIMITS, requireAtMost } from "../document-limits.ts";
import type { Sliced } from "../time-slices.ts";
import { Lines } from "./lines.ts";
import type { Fault } from "./parse.ts";
import { fromSrtMarkup } from "./srt-markup.ts";
import { millis } from "./time.ts";
import { type PlainCue, writeCue } from "./write.ts";

const LINES_PER_SLICE = 500;
const ARROW = "(?:-{1,3}>|[–—]>|→)";
const TIME = "(?:(\\d{1,5}):)?(\\d{1,2}):(\\d{1,2})(?:[.,:](\\d{1,9}))?";
const TIMING = new RegExp(`^${TIME}\\s*${ARROW}\\s*${TIME}(?=\\s|$)`);
/** Meant as a timing line, whatever else may be wrong with it. */
const LIKE_TIMING = new RegExp(`^\\d{1,5}:[^ ]{0,20} {0,20}${ARROW}|^${TIME}(?:\\s|$).{0,40}${ARROW}`);
const LONGEST_TIMING = 300;
/** More than a screen holds; a file that is all one cue would be one long piece of work. */
const LONGEST_TEXT = 10_000;

type Open = { startMs: number; endMs: number; lines: string[]; characters: number };

/**
 * SubRip, as people write it, to WebVTT: any arrow, comma or point, milliseconds and hours left out, numbers missing or
 * repeated, blank lines missing before a timing line or standing inside a text. There is no standard; what cannot be
 * told for sure is a fault. The cues come in the order of their starts, as WebVTT (4.1) wants them.
 */
export function* fromSrt(source: string): Sliced<{ text: string; faults: Fault[] }> {
  const faults: Fault[] = [];
  const cues: PlainCue[] = [];
  let open: Open | null = null;
  let lastNumber = 0;
  /** Read, and perhaps the number of the next cue: known once the next line is. */
  let held: { text: string; line: number; afterBlank: boolean } | null = null;
  let afterBlank = true;

  const release = () => {
    if (!held) return;
    const { text, line } = held;
    if (open && held.afterBlank && Number(text) === lastNumber + 1)
      faults.push({ line, message: `cue ${text.slice(0, 9)} has no timing line` });
    else take(text, line);
    held = null;
  };
  const take = (text: string, line: number) => {
    if (open) {
      const before = open.characters;
      open.characters += text.length + 1;
      if (open.characters <= LONGEST_TEXT) open.lines.push(text);
      else if (before <= LONGEST_TEXT)
        faults.push({ line, message: `the text of a cue must have at most ${LONGEST_TEXT} characters` });
    } else if (faults.length === 0) faults.push({ line, message: "text stands before the first timing line" });
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
      // A number alone above a blank line is none of a cue: it is what somebody says.
      if (held && !held.afterBlank) release();
      afterBlank = true;
      continue;
    }
    const timing = text.length <= LONGEST_TIMING ? readTiming(text) : null;
    if (timing) {
      if (held) lastNumber = Number(held.text);
      else lastNumber++;
      held = null;
      finish();
      yield;
      if (typeof timing === "string") {
        faults.push({ line: lines.number, message: timing });
        open = { startMs: 0, endMs: 0, lines: [], characters: 0 };
      } else open = { ...timing, lines: [], characters: 0 };
    } else {
      release();
      if (/^\d{1,9}$/.test(text)) held = { text, line: lines.number, afterBlank };
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

/** Null for what is a text. A string says what is wrong with a timing line. Coordinates behind the times are dropped. */
function readTiming(text: string): { startMs: number; endMs: number } | string | null {
  const found = TIMING.exec(text);
  if (!found) return LIKE_TIMING.test(text) ? "a timing line must look like 00:00:01,000 --> 00:00:02,000" : null;
  const behind = text.slice(found[0].length).trim();
  if (behind !== "" && !/^(?:[XYxy][12]:-?\d{1,6}\s*)+$/.test(behind))
    return "behind the times of a timing line there must be nothing but coordinates";
  const [start, end] = [found.slice(1, 5), found.slice(5, 9)].map(([hours, minutes, seconds, fraction = ""]) =>
    millis(hours, minutes, seconds, fraction.slice(0, 3).padEnd(3, "0")),
  );
  if (start == null || end == null) return "minutes and seconds of a timing line must be at most 59";
  return start < end ? { startMs: start, endMs: end } : "the cue must end after it starts";
}

/** Whether this is SubRip, for a file whose name does not tell: its times have commas. */
export const looksLikeSrt = (source: string) =>
  new RegExp(`^\\s*(?:\\d{1,9}\\s+)?\\d{1,5}:\\d{1,2}:\\d{1,2},\\d{1,3}\\s*${ARROW}`).test(source);
