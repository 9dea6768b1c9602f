/** Seconds; `end` is exclusive. */
export type TimeRange = { start: number; end: number };

/**
 * How segments are selected. `video` are those whose middle is in the range, which begins and ends at their boundaries.
 * `audio` are those that overlap it: they are cut at other times.
 */
export type Selection = "video" | "audio";

/** Audio is cut at packets, up to 50 ms off the boundaries of the video. */
const AUDIO_SECONDS = 0.1;

const middleOf = ({ start, end }: TimeRange) => (start + end) / 2;

/** Whether a segment is not before the range. Segments after it are not either. */
export const isFrom = (segment: TimeRange, { start }: TimeRange, selection: Selection): boolean =>
  selection === "audio" ? segment.end > start + AUDIO_SECONDS : middleOf(segment) >= start;

/** Whether a segment is not after the range. Segments before it are not either. */
export const isUntil = (segment: TimeRange, { end }: TimeRange, selection: Selection): boolean =>
  selection === "audio" ? segment.start < end - AUDIO_SECONDS : middleOf(segment) < end;
