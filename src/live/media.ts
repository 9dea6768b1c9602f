/** What a packager writes and a playlist lists. Times are on the media timeline of the stream, which its tracks share. */

/** How long parts of a stream are, at most. */
export const PART_SECONDS = 0.5;

type Written<Track> = {
  track: Track;
  /** Number of the segment, from 1: the one before it plus 1. It is the Media Sequence Number. */
  segment: number;
  bytes: number;
  durationSeconds: number;
  startSeconds: number;
};

/** A CMAF chunk (`moof` and `mdat`) that has been written and can be read. */
export type MediaPart<Track> = Written<Track> & {
  /** Index in its segment, from 0. */
  part: number;
  /** Position in the file of the segment, which stays the same when the segment is complete. */
  offset: number;
  /** Its first sample is a keyframe. Of audio each is. */
  isIndependent: boolean;
};

/** A complete segment. `isIndependent`: it begins with a keyframe, which is the default. */
export type MediaSegment<Track> = Written<Track> & { isIndependent?: boolean };
