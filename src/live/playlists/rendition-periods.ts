import type { TrackWindow } from "./track-window.ts";
import { type Period, timeIn } from "./wall-clock.ts";

/**
 * From that segment of the publisher's video on, whose start is `startSeconds`, the DASH manifest lists these encoded tracks:
 * they have all segments, or will have them soon.
 */
export type RenditionsFrom = { segment: number; startSeconds: number; tracks: string[] };

/** A period of a manifest. `renditions`: the encoded tracks that it has. */
export type ManifestPeriod = Period & { id: string; renditions: readonly string[] };

/** More periods are not listed: the manifest would be large, and players slow. */
const MAX_PERIODS = 100;

/**
 * The periods of the DASH manifest. Representations may neither begin nor end within a period (ISO/IEC 23009-1, 5.3.2), so each
 * change of the encoded tracks begins one, next to those that interruptions begin.
 */
export class RenditionPeriods {
  /** In order. One more than periods, because the first one may apply to the first period. */
  #changes: RenditionsFrom[] = [];
  #completeSeconds = 0;
  #revision = 0;

  /** How often the manifest has changed since its media last became longer: each change is a later manifest. */
  get revision(): number {
    return this.#revision;
  }

  /** What applies to the segments that follow. */
  get last(): RenditionsFrom | null {
    return this.#changes.at(-1) ?? null;
  }

  /** A segment is complete, or a gap. */
  completed({ isEncoded, completeSeconds }: TrackWindow): void {
    if (!isEncoded && completeSeconds > this.#completeSeconds) {
      this.#completeSeconds = completeSeconds;
      this.#revision = 0;
    } else if (!isEncoded || this.#changes.length > 0) this.#revision++;
  }

  /** Replaces what was to begin at that segment or later. Nothing before `oldestSeconds` is listed any more. */
  add(change: RenditionsFrom, oldestSeconds: number): void {
    const before = this.#changes.filter(({ segment }, index) => {
      const end = this.#changes[index + 1]?.startSeconds ?? Number.POSITIVE_INFINITY;
      return segment < change.segment && end > oldestSeconds;
    });
    this.#changes = [...before, change].slice(-MAX_PERIODS - 1);
    this.#revision++;
  }

  /** The stream has ended: what an encoded track does not have by now it will not have, so it ends earlier. */
  end(tracks: ReadonlyMap<string, TrackWindow>): void {
    const last = this.#changes.at(-1);
    const source = tracks.values().find(({ init, isEncoded }) => init.kind === "video" && !isEncoded);
    if (!source || !last || last.tracks.length === 0) return;
    const reached = last.tracks.map((name) => {
      const track = tracks.get(name);
      return track && track.length > 0 ? track.lastNumber : 0;
    });
    const segment = Math.max(last.segment, Math.min(...reached) + 1);
    const startSeconds = source.segment(segment)?.startSeconds;
    if (startSeconds !== undefined) this.add({ segment, startSeconds, tracks: [] }, source.firstSeconds);
  }

  /** The periods between interruptions, divided where the encoded tracks change. */
  divide(periods: readonly Period[]): ManifestPeriod[] {
    const divided = periods.flatMap((period, index): ManifestPeriod[] => {
      const end = periods[index + 1]?.seconds ?? Number.POSITIVE_INFINITY;
      const first = this.#changes.findLast(({ startSeconds }) => startSeconds <= period.seconds);
      const within = this.#changes.filter(({ startSeconds }) => startSeconds > period.seconds && startSeconds < end);
      return [
        { ...period, id: `${period.number}`, renditions: first?.tracks ?? [] },
        ...within.map(({ segment, startSeconds: seconds, tracks }) => ({
          id: `${period.number}-${segment}`,
          number: period.number,
          renditions: tracks,
          seconds,
          wallMs: timeIn(period, seconds),
        })),
      ];
    });
    return divided.slice(-MAX_PERIODS);
  }
}
