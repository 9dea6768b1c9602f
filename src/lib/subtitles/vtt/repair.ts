import { DOCUMENT_LIMITS, requireAtMost, type Sliced } from "#lib/base";
import { Lines } from "./lines.ts";
import { type LooseTiming, type MovedTiming, readLooseTiming, shiftedTags } from "./loose-timing.ts";
import type { SkippedCue } from "./skipped.ts";
import { TextEdits } from "./text-edits.ts";
import { readTimestampMap, timestampMapAt } from "./timestamp-map.ts";

const LINES_PER_SLICE = 500;
const SIGNATURE = /^WEBVTT(?:[ \t]|$)/i;
const INDEX = /^[ \t]*\d{1,9}[ \t]*$/;
const OTHER_BLOCK = /^(?:NOTE(?:[ \t]|$)|(?:STYLE|REGION)[ \t]*$)/;
/** Ends of DOS files, and byte order marks of files that were concatenated. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: Ctrl-Z is what is removed
const STRAY = /\u001a|^\ufeff/g;
/** In the middle of a text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const BEGINS_FILE = /^[\u001a\ufeff]{1,3}WEBVTT(?:[ \t]|$)/i;

/** `header` also of a concatenated file, whose lines are removed. `other`: a comment, style, region or fault. */
type State = "between" | "header" | "removed header" | "text" | "skipped" | "other";
type Line = { from: number; to: number; number: number; raw: string; text: string };

export type RepairedVtt = {
  text: string;
  skipped: SkippedCue[];
  /** The line of the source that a line of `text` comes from. */
  sourceLine(line: number): number;
};

/**
 * Repairs small faults of a WebVTT text that have one reading, so that `parsing` accepts it; everything else is
 * unchanged, and faults are left to `parsing`. Removes X-TIMESTAMP-MAP, and subtracts its LOCAL from the cues behind it.
 * Leaves out cues without duration, and those that end before LOCAL. Also repaired: missing blank lines before
 * cues, numbers without a cue, Ctrl-Z, headers of concatenated files, `\N` for a line break, and spaces and hours of
 * timing lines. Linear in time. Throws TooComplex.
 */
export function* repairing(source: string): Sliced<RepairedVtt> {
  const repair = new Repair(source);
  const lines = new Lines(source);
  for (; !lines.ended; lines.advance()) {
    if (lines.number % LINES_PER_SLICE === 0) yield;
    const { from, to, number, text: raw } = lines;
    repair.read({ from, to, number, raw, text: raw.replace(STRAY, "") });
  }
  return repair.finish(lines.number);
}

class Repair {
  #edits: TextEdits;
  #skipped: SkippedCue[] = [];
  /** Number of cues, also of those that are left out. */
  #cues = 0;
  #state: State = "between";
  /** A line that is the id of a cue if a timing line follows. */
  #held: Line | null = null;
  #localMs = 0;
  #hasLocal = false;
  #cue: MovedTiming | null = null;

  constructor(source: string) {
    this.#edits = new TextEdits(source);
  }

  finish(line: number): RepairedVtt {
    this.#releaseHeld();
    return { ...this.#edits.finish(line), skipped: this.#skipped };
  }

  read(line: Line): void {
    if (BEGINS_FILE.test(line.raw)) {
      this.#releaseHeld();
      this.#state = "between";
    }
    if (line.number === 1 && SIGNATURE.test(line.text)) {
      this.#state = "header";
      this.#edits.keep(line, this.#signature(line.text));
      return;
    }
    const timing = this.#state === "other" ? null : readLooseTiming(line.text);
    if (timing) this.#readTiming(line, timing);
    else if (line.text === "" || (this.#state === "between" && line.text.trim() === "")) this.#endBlock(line);
    else this.#readOther(line);
  }

  /** The signature in capitals, without a map behind it. */
  #signature(text: string): string {
    const at = timestampMapAt(text);
    if (at !== -1) this.#readMap(text.slice(at));
    return `WEBVTT${text.slice("WEBVTT".length, at === -1 ? undefined : at)}`;
  }

  /** The first LOCAL of a header counts. */
  #readMap(text: string): boolean {
    const map = readTimestampMap(text);
    if (!map) return false;
    if (map.localMs !== null && !this.#hasLocal) {
      this.#localMs = map.localMs;
      this.#hasLocal = true;
    }
    return true;
  }

  #readTiming(line: Line, timing: LooseTiming): void {
    const id = this.#held;
    this.#held = null;
    this.#hasLocal = false;
    requireAtMost(++this.#cues, DOCUMENT_LIMITS.cues, "cues");
    const cue = timing.moved(-this.#localMs);
    const reason =
      timing.startMs === timing.endMs ? "duration" : timing.startMs < timing.endMs && cue.endMs <= 0 ? "before" : null;
    if (reason) {
      this.#skipped.push({ line: line.number, reason });
      if (id) this.#edits.remove(id);
      this.#edits.remove(line);
      this.#state = "skipped";
      return;
    }
    this.#edits.requireBlankBefore(id ?? line);
    if (id) this.#edits.keep(id, id.text);
    // An end before the start is a fault.
    this.#edits.keep(line, timing.startMs < timing.endMs ? cue.written : line.text);
    this.#cue = cue;
    this.#state = "text";
  }

  #endBlock(line: Line): void {
    this.#releaseHeld();
    if (this.#state === "skipped" && this.#edits.endsBlank) this.#edits.remove(line);
    else this.#edits.keep(line, "");
    this.#state = "between";
  }

  #readOther(line: Line): void {
    const isIndex = INDEX.test(line.text);
    switch (this.#state) {
      case "between":
        if (this.#held && !isHeader(this.#held) && !(isIndex && INDEX.test(this.#held.text))) {
          this.#edits.keep(this.#held, this.#held.text);
          this.#held = null;
          this.#edits.keep(line, line.text);
          this.#state = "other";
        } else if (this.#held && isHeader(this.#held)) {
          this.#releaseHeld();
          this.#state = "removed header";
          this.#readOther(line);
        } else if (this.#readMap(line.text)) this.#edits.remove(line);
        else if (OTHER_BLOCK.test(line.text)) {
          this.#edits.keep(line, line.text);
          this.#state = "other";
        } else {
          this.#releaseHeld();
          this.#held = line;
        }
        break;
      case "header":
      case "removed header":
      case "text":
      case "skipped":
        this.#releaseHeld();
        if (isIndex) this.#held = line;
        else this.#readInside(line);
        break;
      default:
        // Nothing below a comment is a header.
        if (readTimestampMap(line.text)) this.#edits.remove(line);
        else this.#edits.keep(line, line.text);
    }
  }

  /** A line of a header or a cue. */
  #readInside(line: Line): void {
    const isRemoved = this.#readMap(line.text) || this.#state === "skipped" || this.#state === "removed header";
    if (isRemoved) this.#edits.remove(line);
    else if (this.#state === "text") this.#edits.keep(line, this.#payload(line.text));
    else this.#edits.keep(line, line.text);
  }

  /** Null when nothing is left of the line. */
  #payload(text: string): string | null {
    const moved = this.#localMs !== 0 && this.#cue ? shiftedTags(text, -this.#localMs, this.#cue) : text;
    if (!moved.includes("\\N")) return moved;
    const parts = moved.split("\\N").map((part) => part.trim());
    return parts.filter(Boolean).join(this.#edits.terminator) || null;
  }

  /** The held line is no id. A number, or the header of a concatenated file, is removed between cues. */
  #releaseHeld(): void {
    const line = this.#held;
    this.#held = null;
    if (!line) return;
    if (this.#state !== "between") this.#readInside(line);
    else if (isHeader(line)) {
      this.#edits.remove(line);
      this.#localMs = 0;
      this.#hasLocal = false;
      this.#signature(line.text);
    } else if (INDEX.test(line.text)) this.#edits.remove(line);
    else this.#edits.keep(line, line.text);
  }
}

const isHeader = ({ text }: Line) => SIGNATURE.test(text);
