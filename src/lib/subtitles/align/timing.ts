/** One caption: milliseconds from the start of the video, and its text with markup. */
export type TimedText = { startMs: number; endMs: number; text: string };
export type Timing = { startMs: number; endMs: number };

/** An anchor: the track's time `from` (ms) corresponds to the reference's time `to` (ms). */
export type Tie = { from: number; to: number };

/** Neighboring anchors may differ by this much without a jump: cues are set by hand, and rates differ by 4 %. */
const LOOSE_MS = 750;
const DRIFT = 0.06;

/** Whether two anchors fit one offset with at most a drift. */
export const agree = (a: Tie, b: Tie): boolean =>
  Math.abs(b.to - b.from - (a.to - a.from)) <= LOOSE_MS + DRIFT * Math.abs(b.from - a.from);
