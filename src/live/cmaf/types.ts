import type { Rate, TrackConfig } from "#lib/codecs";
import type { MediaPart, MediaSegment } from "../media.ts";

export type TrackKind = "video" | "audio";

/** A track whose init segment is written. Each track is a rendition in a directory of its own, as of an encoded video. */
export type TrackInfo = {
  kind: TrackKind;
  /** The directory, by the rules for renditions: `1080p`, `audio`. */
  name: string;
  /** RFC 6381. */
  codec: string;
  /** Null for audio. */
  width: number | null;
  height: number | null;
  /** Null for video. */
  sampleRate: number | null;
  channels: number | null;
  /** The longest part, if frames are not longer: audio is cut at packets. */
  maxPartSeconds: number;
};

/** A part is one CMAF chunk. Its bytes are on the disk when it is reported. */
export type Part = MediaPart<TrackKind> & {
  /** Its segment ends with it. False where that was not known yet; `onSegment` says it then. */
  isLast: boolean;
  /**
   * The file of the complete segment. Until `onSegment` reports it the file has another name: open it with `openSegment`, which
   * finds both. Null: not stored.
   */
  path: string | null;
  /** The content, for a caller that keeps the newest parts in memory. The packager drops it after the call. */
  data: readonly Buffer[];
};

/** It has the same number in both tracks. */
export type SegmentInfo = MediaSegment<TrackKind> & {
  /** File name in the directory of the rendition. Null when it could not be stored. */
  name: string | null;
};

/**
 * What the caller may want to show or log. Each is reported at most 100 times. After a fatal one no more
 * samples are accepted: the caller calls `end`.
 * - `keyframe_interval`: segments are longer than the target. `keyframe_interval_exceeded` (fatal): than the maximum.
 * - `timestamp_jump`: timestamps jumped; the timeline continues.
 * - `audio_gap`: audio was missing or too early; silence was inserted, or packets dropped.
 * - `video_missing` (fatal): there is audio, but no video to cut it by.
 * - `sample_too_large`: a sample was dropped.
 * - `recording_stopped`: nothing more is stored, because the disk is full or failed. Parts are still reported.
 * - `disk_too_slow`, `segment_too_large`, `duration_exceeded` (all fatal): the limits.
 */
export type Health = {
  code:
    | "keyframe_interval"
    | "keyframe_interval_exceeded"
    | "timestamp_jump"
    | "audio_gap"
    | "video_missing"
    | "sample_too_large"
    | "recording_stopped"
    | "disk_too_slow"
    | "segment_too_large"
    | "duration_exceeded";
  message: string;
  isFatal: boolean;
};

/** A frame that was added. Times are seconds of the recording, without the delay that its edit list removes. */
export type AddedFrame = { decodedSeconds: number; presentedSeconds: number; data: Buffer };

export type PackagerOptions = {
  /** Exists and is empty. */
  folder: string;
  /** Longest part; default 0.5. */
  partSeconds?: number;
  /** A segment ends with the first keyframe after this; default 4. */
  targetSegmentSeconds?: number;
  /** A stream without a keyframe for this long is refused; default 12. */
  maxSegmentSeconds?: number;
  /** Called before each write with its bytes. What it throws ends the recording like a full disk. */
  admit?: (bytes: number) => Promise<void>;
  /** The callbacks must not throw. Parts and segments of one track are reported in their order. */
  onInit?: (track: TrackInfo & { path: string }) => void;
  onPart?: (part: Part) => void;
  onSegment?: (segment: SegmentInfo) => void;
  onHealth?: (health: Health) => void;
  /** Each frame of video, in the order of decoding, before the part that it is in is reported. */
  onFrame?: (frame: AddedFrame) => void;
  /** A segment of video ends there, in seconds of the recording; before it is reported. */
  onSegmentEnd?: (seconds: number) => void;
  /** A configuration that the running tracks cannot continue with. Samples are ignored until `end`. */
  onConfigChanged?: (config: TrackConfig) => void;
};

export type RecordedTrack = {
  kind: TrackKind;
  name: string;
  segments: number;
  /** The size of its segments and init segment. */
  bytes: number;
  durationSeconds: number;
  /** Null for video. */
  channels: number | null;
};

/** What `readWritten` and `writeManifests` of src/media need to know of a recording. Null tracks have no segment. */
export type Recording = {
  video: (RecordedTrack & { rate: Rate }) | null;
  audio: RecordedTrack | null;
  durationSeconds: number;
};
