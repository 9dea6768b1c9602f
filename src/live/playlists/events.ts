import type { MediaPart, MediaSegment } from "../media.ts";

/** A track and its initialization segment. Comes before the first part or segment of the track. */
export type InitEvent = {
  /** Name of the track and of its folder. */
  track: string;
  kind: "video" | "audio";
  /** RFC 6381. */
  codec: string;
  width?: number | undefined;
  height?: number | undefined;
  /** Frames per second. */
  frameRate?: number | undefined;
  channels?: number | undefined;
  /** The sample rate of audio, in Hz. Streams of earlier versions do not state it. */
  sampleRate?: number | undefined;
  /**
   * A worker encodes it from the video of the publisher: its segments have the numbers, dates and discontinuities of that. It
   * begins later, may have gaps, and lags behind.
   */
  isEncoded?: boolean | undefined;
};

/** `track` is the name of the track. */
export type PartEvent = MediaPart<string> & {
  /** No other part of this segment follows. Optional: the event `segment` says the same, but later. */
  isLast?: boolean | undefined;
};

/** Its parts, if it has any, came before. */
export type SegmentEvent = MediaSegment<string> & {
  /** Name of its file in the folder of the track. */
  name: string;
};

/** A segment that an encoded track will never have. That of the publisher is complete, and has these times. */
export type GapEvent = { track: string; segment: number; startSeconds: number };

/** Longer than any segment that a player accepts, and small enough for exact sums. */
const MAX_SECONDS = 3600;
/** A year. Audio may begin shortly before the start of the timeline, so negative times are valid. */
const MAX_START_SECONDS = 366 * 86_400;

const FILE_NAME = /^\w[\w.-]{0,99}$/;

/** Throws a RangeError for values that no file has. A playlist with one of them would stop every player. */
export function checkEvent(event: SegmentEvent | PartEvent): void {
  const { segment, bytes, durationSeconds, startSeconds } = event;
  const isValid =
    isCount(segment) &&
    isCount(bytes) &&
    bytes > 0 &&
    durationSeconds > 0 &&
    durationSeconds <= MAX_SECONDS &&
    Math.abs(startSeconds) <= MAX_START_SECONDS &&
    ("part" in event ? isCount(event.part) && isCount(event.offset) : FILE_NAME.test(event.name));
  if (!isValid) throw new RangeError(`A live event has an impossible value: ${JSON.stringify(event)}`);
}

const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0;
