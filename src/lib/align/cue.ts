/** One caption: milliseconds from the start of the video, and its text as it stands in the file, markup included. */
export type TimedText = { startMs: number; endMs: number; text: string };
export type Timing = { startMs: number; endMs: number };
