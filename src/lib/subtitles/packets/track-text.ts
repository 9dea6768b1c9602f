import { DOCUMENT_LIMITS, MAX_SUBTITLE_BYTES } from "#lib/base";
import { type PlainCue, writeCue } from "../vtt/write.ts";
import type { PacketCue } from "./packet.ts";

const HEADER = "WEBVTT\n";
/** Times, the arrow and blank lines. */
const CUE_BYTES = 40;
/** The same text again within it is the same cue: fades and effects of ASS are events of one frame each. */
const SAME_MS = 50;

export type WrittenTrack = {
  /** A WebVTT file; null when there is nothing to read. */
  vtt: string | null;
  /** Cues that could not be read. */
  skipped: number;
};

/**
 * The WebVTT file of one text track of a source, from its cues in any order, in memory within the limits of a subtitle. Times
 * are milliseconds from the start of the asset.
 */
export class TrackText {
  readonly #endMs: number;
  readonly #cues: PlainCue[] = [];
  /** The last cue with a text, at a place. */
  readonly #last = new Map<string, PlainCue>();
  #bytes = HEADER.length;
  #skipped = 0;
  #hasOverflowed = false;

  /** `durationSeconds`: where the asset ends, if it is known. */
  constructor(durationSeconds: number | null) {
    this.#endMs = durationSeconds === null ? Number.POSITIVE_INFINITY : Math.round(durationSeconds * 1000);
  }

  /** Whether there is more than a subtitle may have; nothing more is taken. */
  get isOver(): boolean {
    return this.#hasOverflowed || this.#bytes > MAX_SUBTITLE_BYTES || this.#cues.length > DOCUMENT_LIMITS.cues;
  }

  /** Cues of a packet that cannot be read, or that have no end. */
  skip(count = 1): void {
    this.#skipped += count;
  }

  /** There is more than is read. */
  overflow(): void {
    this.#hasOverflowed = true;
  }

  add(startMs: number, endMs: number, { text, settings }: PacketCue): void {
    if (this.isOver || text === "") return;
    const start = Math.max(0, Math.round(startMs));
    const end = Math.min(Math.round(endMs), this.#endMs);
    // Outside of what plays. Times that wrap are negative, or end before they start.
    if (endMs <= 0 || startMs >= this.#endMs) return;
    if (!(end > start) || end > LATEST_MS) return this.skip();
    const key = `${settings}\n${text}`;
    const last = this.#last.get(key);
    if (last && start >= last.startMs && start <= last.endMs + SAME_MS) {
      last.endMs = Math.max(last.endMs, end);
      return;
    }
    const cue = { id: null, startMs: start, endMs: end, settings, text };
    this.#bytes += Buffer.byteLength(text) + settings.length + CUE_BYTES;
    this.#cues.push(cue);
    this.#last.set(key, cue);
  }

  end(): WrittenTrack {
    const skipped = this.#skipped;
    if (this.#cues.length === 0) return { vtt: null, skipped };
    // WebVTT, 4.1: in the order in which they begin.
    const cues = this.#cues.toSorted((one, other) => one.startMs - other.startMs);
    return { vtt: [HEADER, ...cues.map((cue) => `${writeCue(cue)}\n`)].join("\n"), skipped };
  }
}
/** Hours of a timestamp have few digits. */
const LATEST_MS = 99_999 * 3_600_000;
