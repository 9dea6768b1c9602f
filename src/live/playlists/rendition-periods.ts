import type { TrackWindow } from "./track-window.ts";
import { type Period, timeIn } from "./wall-clock.ts";

/**
 * From that segment of the publisher's video on, whose start is `startSeconds`, the DASH manifest lists these encoded tracks:
 * they have all segments, or will have them soon.
 */
export type RenditionsFrom = { segment: number; startSeconds: number; tracks: string[] };

/** A period of a manifest. `renditions`: the encoded tracks that it has. `isIndependent`: its segments begin with keyframes. */
export type ManifestPeriod = Period & { id: string; renditions: readonly string[]; isIndependent: boolean };

/** A segment of the publisher's video. */
export type Start = { segment: number; startSeconds: number };

/** More periods are not listed: the manifest would be large, and players slow. */
const MAX_PERIODS = 100;

/**
 * The periods of the DASH manifest. Representations may neither begin nor end within a period (ISO/IEC 23009-1, 5.3.2), nor may an
 * update change what it states of one, so each change of the encoded tracks begins one, and the first segment that does not
 * begin with a keyframe, next to those that interruptions begin.
 */
export class RenditionPeriods {
  /** In order. One more than periods, because the first one may apply to the first period. */
  #changes: RenditionsFrom[] = [];
  #dependent: Start | null = null;
  #completeSeconds = 0;
  #revision = 0;

  /** Milliseconds to add to the end of its media for the time of a manifest: each change is a later one. */
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
      const advanceMs = (completeSeconds - this.#completeSeconds) * 1000;
      this.#completeSeconds = completeSeconds;
      // Segments of audio end up to half a packet after those of video: by less than there were changes since.
      this.#revision = Math.max(0, Math.ceil(this.#revision + 1 - advanceMs));
    } else if (!isEncoded || this.#changes.length > 0) this.#revision++;
  }

  /** The first segment that may begin without a keyframe; null while all begin with one. */
  get dependent(): Start | null {
    return this.#dependent;
  }

  /** From that segment of the publisher's video on, segments may begin without a keyframe. Only the first call has an effect. */
  depend(start: Start): void {
    this.#dependent ??= { segment: start.segment, startSeconds: start.startSeconds };
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

  /** The periods between interruptions, divided where the encoded tracks change, and where segments become dependent. */
  divide(periods: readonly Period[]): ManifestPeriod[] {
    const dependent = this.#dependent;
    const starts = new Map<number, number>([
      ...this.#changes.map(({ segment, startSeconds }) => [segment, startSeconds] as const),
      ...(dependent ? [[dependent.segment, dependent.startSeconds] as const] : []),
    ]);
    const inOrder = [...starts].sort(([, one], [, other]) => one - other);
    const divided = periods.flatMap((period, index): ManifestPeriod[] => {
      const end = periods[index + 1]?.seconds ?? Number.POSITIVE_INFINITY;
      const within = inOrder.filter(([, startSeconds]) => startSeconds > period.seconds && startSeconds < end);
      return [
        this.#periodFrom({ ...period, id: `${period.number}` }),
        ...within.map(([segment, seconds]) =>
          this.#periodFrom({
            id: `${period.number}-${segment}`,
            number: period.number,
            seconds,
            wallMs: timeIn(period, seconds),
          }),
        ),
      ];
    });
    return divided.slice(-MAX_PERIODS);
  }

  #periodFrom(period: Period & { id: string }): ManifestPeriod {
    const { seconds } = period;
    const renditions = this.#changes.findLast(({ startSeconds }) => startSeconds <= seconds)?.tracks ?? [];
    return {
      ...period,
      renditions,
      isIndependent: (this.#dependent?.startSeconds ?? Number.POSITIVE_INFINITY) > seconds,
    };
  }
}
