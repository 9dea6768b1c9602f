import { rm } from "node:fs/promises";
import { join } from "node:path";
import { segmentFileName } from "#media/arguments.ts";
import type { SegmentEvent } from "../playlists/events.ts";
import type { SegmentRange } from "./finish-recording.ts";
import type { WantedClip } from "./messages.ts";

type Segment = { number: number; startSeconds: number; endSeconds: number };

/** Sums of durations are not exact. */
const EPSILON = 0.001;
/** The window is at least six target durations of at most 12 s. */
const MIN_WINDOW_SECONDS = 72;

/**
 * How long segments are kept of a stream without a recording: a playlist that a viewer has just read names segments for as
 * long as the window lasts (draft-pantos-hls-rfc8216bis, 6.2.2).
 */
export const keptSeconds = (dvrSeconds: number) => 2 * Math.max(dvrSeconds, MIN_WINDOW_SECONDS);

/** The segments of a running stream that are complete in all of its tracks, and exist. */
export class SegmentList {
  readonly #folder: string;
  /** Older ones are deleted; null: all are kept. */
  readonly #keptSeconds: number | null;
  readonly #segments: Segment[] = [];
  /** Complete in the track that begins the list, and not in all. */
  readonly #pending: Segment[] = [];
  readonly #last = new Map<string, number>();

  constructor(folder: string, kept: number | null) {
    this.#folder = folder;
    this.#keptSeconds = kept;
  }

  /** `tracks`: the names of all tracks. */
  add({ track, segment, startSeconds, durationSeconds }: SegmentEvent, tracks: readonly string[]): void {
    this.#last.set(track, segment);
    if (track === tracks[0])
      this.#pending.push({ number: segment, startSeconds, endSeconds: startSeconds + durationSeconds });
    const complete = Math.min(...tracks.map((name) => this.#last.get(name) ?? 0));
    while (this.#pending[0] && this.#pending[0].number <= complete)
      this.#segments.push(this.#pending.shift() as Segment);
    this.#trim(tracks);
  }

  /** The whole segments that contain the requested time; null when there are none. */
  rangeOf(wanted: WantedClip): SegmentRange | null {
    const end = this.#segments.at(-1)?.endSeconds ?? 0;
    const [from, to] =
      "lastSeconds" in wanted ? [end - wanted.lastSeconds, end] : [wanted.startSeconds, wanted.endSeconds];
    const isIn = ({ startSeconds, endSeconds }: Segment) => endSeconds > from + EPSILON && startSeconds < to - EPSILON;
    const first = this.#segments.find(isIn);
    const last = this.#segments.findLast(isIn);
    return first && last ? { first: first.number, last: last.number, seconds: first.startSeconds } : null;
  }

  #trim(tracks: readonly string[]): void {
    if (this.#keptSeconds === null) return;
    const end = this.#segments.at(-1)?.endSeconds ?? 0;
    while (this.#segments[0] && end - this.#segments[0].endSeconds > this.#keptSeconds) {
      const { number } = this.#segments.shift() as Segment;
      // What cannot be deleted now is deleted with the directory.
      for (const track of tracks)
        rm(join(this.#folder, track, segmentFileName(number)), { force: true }).catch(() => {});
    }
  }
}
