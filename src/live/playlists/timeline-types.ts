import type { InitEvent, SegmentEvent } from "./events.ts";
import type { CaptionRendition } from "./multivariant-playlist.ts";
import type { RenditionsFrom, Start } from "./rendition-periods.ts";
import type { TrackState } from "./track-window.ts";
import type { Anchor } from "./wall-clock.ts";

export type TimelineOptions = {
  /** Time of day of the start of the media timeline, in ms since the epoch. */
  startedAtMs: number;
  /** How much a viewer can seek back. At least six target durations are kept. */
  dvrSeconds: number;
  /** With parts, blocking requests and delta updates (LL-HLS). */
  isLowLatency: boolean;
  /** No part of video or audio is longer. */
  partTargetSeconds: number;
  /** How long the packager makes segments if keyframes allow it. TARGETDURATION is at least this. */
  segmentTargetSeconds: number;
  /** File name of a media playlist in the folder of its track. */
  playlistName: string;
  maxWaiters?: number;
  /** The captions that playlists list; they may become more. */
  captions?: { readonly renditions: readonly CaptionRendition[] };
  /** Continues the playlists of another timeline. */
  state?: TimelineState | undefined;
};

/**
 * What a timeline needs to continue the playlists of another one with the events that follow: numbers, dates and
 * discontinuities continue. The new timeline lists no segment from before.
 */
export type TimelineState = {
  tracks: TrackState[];
  targetSeconds: number | null;
  discontinuities: number;
  anchor: Anchor;
  isInterrupted: boolean;
  /** As `encode` and `list` of the timeline had it. */
  encoded: readonly string[];
  renditions: RenditionsFrom | null;
  /** The first segment that may begin without a keyframe; missing in reports of earlier versions. */
  dependent?: Start | null;
};

/** What playlists list of a track. */
export type ListedTrack = { init: InitEvent; segments: SegmentEvent[] };

export type TimelineFacts = {
  /** TARGETDURATION in seconds. Null until the first segment is complete. */
  targetSeconds: number | null;
  isEnded: boolean;
  /** Keyframes are so sparse that latency suffers: warn the publisher. */
  isTargetLong: boolean;
  /** Keyframes are too sparse for live playback: refuse the publisher. */
  isTargetTooLong: boolean;
  /** Segments beyond TARGETDURATION, parts beyond PART-TARGET, parts below 85 % of it: some players stop at them. */
  segmentsOver: number;
  partsOver: number;
  partsUnder: number;
  waiters: number;
};
