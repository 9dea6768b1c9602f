/** Seconds; `end` is exclusive. */
export type TimeRange = { start: number; end: number };

/**
 * How segments are selected. `video` are those whose middle is in the range, which begins and ends at their boundaries.
 * `audio` are those that overlap it: they are cut at other times.
 */
export type Selection = "video" | "audio";

/** Audio is cut at packets, up to 50 ms off the boundaries of the video. */
const AUDIO_SECONDS = 0.1;

export function isSelected(segment: TimeRange, { start, end }: TimeRange, selection: Selection): boolean {
  if (selection === "audio") return segment.start < end - AUDIO_SECONDS && segment.end > start + AUDIO_SECONDS;
  const middle = (segment.start + segment.end) / 2;
  return middle >= start && middle < end;
}
