import { DOCUMENT_LIMITS, requireAtMost, type Sliced } from "#lib/base";
import { Lines } from "./lines.ts";
import type { Fault } from "./parse.ts";
import type { SkippedCue } from "./skipped.ts";
import { fromSrtMarkup } from "./srt-markup.ts";
import { millis } from "./time.ts";
import { hasTimestampMap, readTimestampMap } from "./timestamp-map.ts";
import { type PlainCue, writeCue } from "./write.ts";

const LINES_PER_SLICE = 500;
/** The end of a DOS file. */
const CTRL_Z = "\u001a";
const ARROW = "(?:-{1,3}>|[–—]>|→)";
const TIME = "(-?)(?:(\\d{1,5}) ?: ?)?(\\d{1,2}) ?: ?(\\d{1,2})(?: ?[.,:] ?(\\d{1,9}))?";
const TIMING = new RegExp(`^${TIME}\\s*${ARROW}\\s*${TIME}(?=\\s|$)`);
/** Looks like a timing line, even if it is malformed. */
const LIKE_TIMING = new RegExp(`^-?\\d{1,5}:[^ ]{0,20} {0,20}${ARROW}|^${TIME}(?:\\s|$).{0,40}${ARROW}`);
const LONGEST_TIMING = 300;
/** More than a screen holds; bounds the cost of a file that is a single cue. */
const LONGEST_TEXT = 10_000;

type Range = { startMs: number; endMs: number };
/** The last line read, which may be the number of the next cue; the following line decides. */
type Pending = { text: string; line: number; afterBlank: boolean };
/** `localMs` is the LOCAL of the header above it. */
type Open = Range & { localMs: number; line: number; lines: string[]; characters: number };

class SrtReader {
  readonly faults: Fault[] = [];
  readonly skipped: SkippedCue[] = [];
  readonly cues: PlainCue[] = [];
  #open: Open | null = null;
  #lastNumber = 0;
  #pending: Pending | null = null;
  #afterBlank = true;
  #localMs = 0;
  #hasLocal = false;

  readMap({ localMs }: { localMs: number | null }): void {
    // The first LOCAL of a header counts.
    if (!this.#hasLocal) this.#localMs = localMs ?? this.#localMs;
    this.#hasLocal ||= localMs !== null;
  }

  /** Reads a line without its surrounding spaces. Returns whether it has completed a cue. */
  read(text: string, line: number): boolean {
    if (text === "") {
      // A lone number above a blank line is not a cue number but text.
      if (this.#pending && !this.#pending.afterBlank) this.#release("text");
      this.#afterBlank = true;
      return false;
    }
    const timing = text.length <= LONGEST_TIMING ? readTiming(text) : null;
    if (timing) this.#begin(timing, line);
    else this.#readText(text, line);
    this.#afterBlank = false;
    return timing !== null;
  }

  end(): void {
    this.#release("end");
    this.#finish();
  }

  #begin(timing: Range | string, line: number): void {
    this.#lastNumber = this.#pending ? Number(this.#pending.text) : this.#lastNumber + 1;
    this.#pending = null;
    this.#finish();
    this.#hasLocal = false;
    if (typeof timing === "string") this.faults.push({ line, message: timing });
    // The text below a malformed line is of no cue: one that ends before it starts.
    const range = typeof timing === "string" ? { startMs: 1, endMs: 0 } : timing;
    this.#open = { ...range, localMs: this.#localMs, line, lines: [], characters: 0 };
  }

  #readText(text: string, line: number): void {
    const isNumber = /^\d{1,9}$/.test(text);
    this.#release(isNumber ? "number" : "text");
    if (isNumber) this.#pending = { text, line, afterBlank: this.#afterBlank };
    else this.#take(text, line);
  }

  /** Decides about the pending number, by what follows it. */
  #release(next: "text" | "number" | "end"): void {
    if (!this.#pending) return;
    const { text, line, afterBlank } = this.#pending;
    const isNext = this.#open ? afterBlank && Number(text) === this.#lastNumber + 1 : next === "number";
    this.#pending = null;
    if (!isNext) this.#take(text, line);
    else if (next === "text") this.faults.push({ line, message: `cue ${text.slice(0, 9)} has no timing line` });
    // A number without a cue.
    else this.#lastNumber = Number(text);
  }

  /** Adds a line to the text of the open cue. */
  #take(text: string, line: number): void {
    const open = this.#open;
    if (!open) {
      if (this.faults.length === 0) this.faults.push({ line, message: "text precedes the first timing line" });
      return;
    }
    const before = open.characters;
    open.characters += text.length + 1;
    if (open.characters <= LONGEST_TEXT) open.lines.push(text);
    else if (before <= LONGEST_TEXT)
      this.faults.push({ line, message: `the text of a cue must have at most ${LONGEST_TEXT} characters` });
  }

  #finish(): void {
    if (!this.#open) return;
    const { startMs, endMs, line, lines, localMs } = this.#open;
    if (startMs > endMs) return;
    requireAtMost(this.cues.length + this.skipped.length + 1, DOCUMENT_LIMITS.cues, "cues");
    const { text, top } = fromSrtMarkup(lines.join("\n"));
    if (startMs === endMs) this.skipped.push({ line, reason: "duration" });
    else if (endMs <= localMs) this.skipped.push({ line, reason: "before" });
    else if (text === "") this.skipped.push({ line, reason: "text" });
    else {
      const times = { startMs: Math.max(0, startMs - localMs), endMs: endMs - localMs };
      this.cues.push({ id: null, ...times, settings: top ? "line:0" : "", text });
    }
  }
}

/**
 * Converts SubRip to WebVTT, with the deviations found in real files: any arrow, comma or point, missing milliseconds
 * and hours, missing or repeated numbers, numbers without a cue, missing blank lines before a timing line, blank lines in
 * texts, Ctrl-Z, and an X-TIMESTAMP-MAP, whose LOCAL is subtracted. There is no standard; ambiguous input is a fault.
 * `skipped` are cues that cannot be shown. Cues are sorted by start, as WebVTT (4.1) requires.
 * @example
 * import { runToEnd } from "#lib/base";
 * const { text } = runToEnd(fromSrt("1\n00:00:01,000 --> 00:00:02,500\nHello"));
 * text // => "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHello\n"
 */
export function* fromSrt(source: string): Sliced<{ text: string; faults: Fault[]; skipped: SkippedCue[] }> {
  const reader = new SrtReader();
  const { cues, faults, skipped } = reader;
  // Both are rare, and there may be a million lines.
  const hasCtrlZ = source.includes(CTRL_Z);
  const hasMap = hasTimestampMap(source);
  for (const lines = new Lines(source); !lines.ended && faults.length < DOCUMENT_LIMITS.faults; lines.advance()) {
    if (lines.number % LINES_PER_SLICE === 0) yield;
    const text = (hasCtrlZ ? lines.text.replaceAll(CTRL_Z, "") : lines.text).trim();
    const map = hasMap ? readTimestampMap(text) : undefined;
    if (map) reader.readMap(map);
    else if (reader.read(text, lines.number)) yield;
  }
  reader.end();
  cues.sort((one, other) => one.startMs - other.startMs);
  yield;
  const blocks: string[] = ["WEBVTT"];
  for (const [index, cue] of cues.entries()) {
    if (index % LINES_PER_SLICE === 0) yield;
    blocks.push(writeCue(cue));
  }
  return { text: `${blocks.join("\n\n")}\n`, faults, skipped };
}

/** Null for a text line. A string describes the fault of a timing line. Coordinates after the times are dropped. */
function readTiming(text: string): Range | string | null {
  const match = TIMING.exec(text);
  if (!match) return LIKE_TIMING.test(text) ? "a timing line must look like 00:00:01,000 --> 00:00:02,000" : null;
  const behind = text.slice(match[0].length).trim();
  if (behind !== "" && !/^(?:[XYxy][12]:-?\d{1,6}\s*)+$/.test(behind))
    return "behind the times of a timing line there must be nothing but coordinates";
  const [start, end] = [match.slice(1, 6), match.slice(6, 11)].map(([sign, hours, minutes, seconds, fraction = ""]) => {
    const ms = millis(hours, minutes, seconds, fraction.slice(0, 3).padEnd(3, "0"));
    return ms !== null && sign ? -ms : ms;
  });
  if (start == null || end == null) return "minutes and seconds of a timing line must be at most 59";
  return start <= end ? { startMs: start, endMs: end } : "the cue must end after it starts";
}

/** Detects SubRip in a file without a known extension: its times have commas. */
export const looksLikeSrt = (source: string) =>
  new RegExp(`^\\s*(?:\\d{1,9}\\s+)?\\d{1,5}:\\d{1,2}:\\d{1,2},\\d{1,3}\\s*${ARROW}`).test(source);
