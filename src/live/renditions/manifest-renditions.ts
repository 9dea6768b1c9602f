import type { RenditionsFrom } from "../playlists/rendition-periods.ts";
import type { SourceSegments } from "./source-segments.ts";

/** In segments: a rendition that is further behind the publisher's video is not listed, so that players need not wait for it. */
const MAX_LAG = 2;

/**
 * Decides from which segment on the DASH manifest lists which renditions of a running stream. All of them begin with a segment
 * that is not listed yet, because a player may have read a period that lists it without them. Where one ends, they all do: the
 * period ends early, and players continue with the publisher's video.
 */
export class ManifestRenditions {
  readonly #source: SourceSegments;
  readonly #report: (change: RenditionsFrom) => void;
  #encoded: readonly string[] = [];
  readonly #lastByTrack = new Map<string, number>();
  /** What is listed now, and since which segment. */
  #tracks: readonly string[] = [];
  #from = 0;

  constructor(source: SourceSegments, report: (change: RenditionsFrom) => void) {
    this.#source = source;
    this.#report = report;
  }

  /** The names of all that are being encoded, largest first. */
  encoded(tracks: readonly string[]): void {
    this.#encoded = tracks;
    this.update();
  }

  /** A rendition has a complete segment. */
  segment(track: string, segment: number): void {
    this.#lastByTrack.set(track, segment);
    this.update();
  }

  /** A rendition will never have that segment. */
  gap(track: string, segment: number): void {
    if (this.#tracks.includes(track) && segment >= this.#from)
      this.#list(
        segment,
        this.#tracks.filter((other) => other !== track),
      );
  }

  /** The publisher's video has advanced. */
  update(): void {
    const { lastComplete } = this.#source;
    const lost = this.#tracks.filter((track) => !this.#encoded.includes(track));
    if (lost.length > 0) {
      const reached = Math.min(...lost.map((track) => this.#lastOf(track)));
      const rest = this.#tracks.filter((track) => this.#encoded.includes(track));
      this.#list(Math.max(this.#from, reached + 1), rest);
      return;
    }
    const hasBegun = (track: string) => this.#lastOf(track) >= this.#from;
    if (lastComplete >= this.#from + MAX_LAG && !this.#tracks.every(hasBegun))
      this.#list(this.#from, this.#tracks.filter(hasBegun));
    const isListed = (track: string) => this.#tracks.includes(track);
    const isNear = (track: string) => this.#lastOf(track) > lastComplete - MAX_LAG;
    const listed = this.#encoded.filter((track) => isListed(track) || isNear(track));
    if (!listed.every(isListed)) this.#list(lastComplete + 1, listed);
  }

  #lastOf(track: string): number {
    return this.#lastByTrack.get(track) ?? 0;
  }

  /** Does nothing before the segment begins: its start is not known. */
  #list(segment: number, tracks: readonly string[]): void {
    // A segment that is further back than is known was lost with its encoder.
    const at = this.#source.find(segment) ?? this.#source.find(Math.max(segment, this.#source.lastComplete));
    if (!at) return;
    this.#from = at.number;
    this.#tracks = tracks;
    this.#report({ segment: at.number, startSeconds: at.startSeconds, tracks: [...tracks] });
  }
}
