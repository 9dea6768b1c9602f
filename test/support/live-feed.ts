import { LiveTimeline } from "#live/playlists/timeline.ts";
import type { TimelineOptions } from "#live/playlists/timeline-types.ts";

/** Position of the first fragment in the file of a segment: `styp` and the reserved `free` come first. */
const FIRST_OFFSET = 76;
const BYTES_PER_SECOND = 100_000;

export const STARTED_AT = Date.UTC(2026, 10, 25, 12);

export const timelineOf = (options: Partial<TimelineOptions> = {}) =>
  new LiveTimeline({
    startedAtMs: STARTED_AT,
    dvrSeconds: 60,
    isLowLatency: true,
    partTargetSeconds: 0.5,
    segmentTargetSeconds: 4,
    playlistName: "live.m3u8",
    ...options,
  });

type State = { segment: number; part: number; offset: number; startSeconds: number; segmentStart: number };

/** Plays the part of the packager: keeps the numbers, offsets and times that follow from the durations. */
export class Feed {
  readonly timeline: LiveTimeline;
  readonly #states = new Map<string, State>();
  readonly #first: number;

  constructor(timeline: LiveTimeline, tracks: readonly string[] = ["720p", "audio"], firstSegment = 1) {
    this.timeline = timeline;
    this.#first = firstSegment;
    for (const track of tracks) this.init(track);
  }

  get tracks(): string[] {
    return [...this.#states.keys()];
  }

  init(track: string): void {
    const isAudio = track.startsWith("audio");
    this.timeline.init(
      isAudio
        ? { track, kind: "audio", codec: "mp4a.40.2", channels: 2 }
        : { track, kind: "video", codec: "avc1.64001f", width: 1280, height: 720, frameRate: 30 },
    );
    const others = [...this.#states.values()];
    const { segment, startSeconds } = others[0] ?? { segment: this.#first, startSeconds: 0 };
    this.#states.set(track, { segment, part: 0, offset: FIRST_OFFSET, startSeconds, segmentStart: startSeconds });
  }

  state(track: string): Readonly<State> {
    return this.#state(track);
  }

  part(track: string, durationSeconds = 0.5, { isLast = false, isIndependent = true } = {}): void {
    const state = this.#state(track);
    const { segment, part, offset, startSeconds } = state;
    const bytes = Math.ceil(durationSeconds * BYTES_PER_SECOND);
    this.timeline.part({ track, segment, part, offset, bytes, durationSeconds, isIndependent, startSeconds, isLast });
    state.part++;
    state.offset += bytes;
    state.startSeconds += durationSeconds;
  }

  /** Completes the segment that the parts made. */
  segment(track: string, isIndependent = true): void {
    const state = this.#state(track);
    const { segment, segmentStart, offset } = state;
    const durationSeconds = state.startSeconds - segmentStart;
    const name = segmentFile(segment);
    const times = { durationSeconds, startSeconds: segmentStart };
    this.timeline.segment({ track, segment, bytes: offset, ...times, name, isIndependent });
    Object.assign(state, { segment: segment + 1, part: 0, offset: FIRST_OFFSET, segmentStart: state.startSeconds });
  }

  /** A segment without parts. */
  whole(track: string, durationSeconds = 4, isIndependent = true): void {
    const state = this.#state(track);
    state.startSeconds += durationSeconds;
    state.offset += Math.ceil(durationSeconds * BYTES_PER_SECOND);
    this.segment(track, isIndependent);
  }

  /** Complete segments of parts, of all tracks. */
  segments(count: number, durationSeconds = 4, partSeconds = 0.5): void {
    const parts = Math.round(durationSeconds / partSeconds);
    for (let each = 0; each < count; each++) {
      for (let part = 1; part <= parts; part++)
        for (const track of this.tracks) this.part(track, partSeconds, { isLast: part === parts });
      for (const track of this.tracks) this.segment(track);
    }
  }

  text(track: string, skip = false): string {
    const playlist = this.timeline.mediaPlaylist(track, { skip });
    if (!playlist) throw new Error(`${track} has no playlist yet.`);
    return playlist.text();
  }

  #state(track: string): State {
    const state = this.#states.get(track);
    if (!state) throw new Error(`No track ${track}.`);
    return state;
  }
}

export const segmentFile = (segment: number) => `${String(segment).padStart(5, "0")}.m4s`;
