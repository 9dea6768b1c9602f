/** Seconds; `end` is exclusive. */
export type TimeRange = { start: number; end: number };
/** `withMoreAudio`: audio is cut exactly later, from more segments than the range needs. */
export type CutRange = TimeRange & { withMoreAudio?: boolean };

/**
 * How segments are selected. `video` are those whose middle is in the range, which begins and ends at their boundaries.
 * `audio` are those that overlap it: they are cut at other times.
 */
export type Selection = "video" | "audio";

/** Audio is cut at packets, up to 50 ms off the boundaries of the video. */
const AUDIO_SECONDS = 0.1;

/** A margin is less than half of a range of a few frames, so that there is a segment between the margins. */
const audioMargin = ({ start, end, withMoreAudio = false }: CutRange) =>
  withMoreAudio ? -AUDIO_SECONDS : Math.min(AUDIO_SECONDS, (end - start) / 3);

const middleOf = ({ start, end }: TimeRange) => (start + end) / 2;

/** Whether a segment is not before the range. Segments after it are not either. */
export const isFrom = (segment: TimeRange, range: CutRange, selection: Selection): boolean =>
  selection === "audio" ? segment.end > range.start + audioMargin(range) : middleOf(segment) >= range.start;

/** Whether a segment is not after the range. Segments before it are not either. */
export const isUntil = (segment: TimeRange, range: CutRange, selection: Selection): boolean =>
  selection === "audio" ? segment.start < range.end - audioMargin(range) : middleOf(segment) < range.end;
