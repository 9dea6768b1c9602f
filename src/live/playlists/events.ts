/** What the packager reports. Times are on the media timeline of the broadcast, which is common to its tracks. */

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
};

/** A fragment (moof and mdat) that has been written and can be read. */
export type PartEvent = {
  track: string;
  /** Number of its segment: the one before it plus 1. It is the Media Sequence Number. */
  segment: number;
  /** Index in the segment, from 0. */
  part: number;
  /** Position in the file of the segment. */
  offset: number;
  bytes: number;
  durationSeconds: number;
  /** It starts with a keyframe. Always true for audio. */
  isIndependent: boolean;
  startSeconds: number;
  /** No other part of this segment follows. Optional: the event `segment` says the same, but later. */
  isLast?: boolean | undefined;
};

/** A complete segment. Its parts, if it has any, came before. */
export type SegmentEvent = {
  track: string;
  segment: number;
  bytes: number;
  durationSeconds: number;
  startSeconds: number;
  /** Name of its file in the folder of the track. */
  name: string;
};

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
