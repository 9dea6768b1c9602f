import { formatTime, millis, readTime } from "./time.ts";

const TIME = "(?:(\\d+):)?(\\d{2}):(\\d{2})\\.(\\d{3})";
/** As browsers read a timing line (WebVTT, 6.3): any spaces, and any number of digits of hours. */
const TIMING = new RegExp(`^([ \\t]*)(${TIME})([ \\t]*)-->([ \\t]*)(${TIME})([ \\t][^]*)?$`);
/** Its name before 2014. */
const ALIGN_MIDDLE = /([ \t]align:)middle(?=[ \t]|$)/;
/** WebVTT, 4.2.2: a timestamp tag, which delays the text that follows it. */
const TAG = /<((?:\d{2,}:)?\d{2}:\d{2}\.\d{3})>/g;

type Range = { startMs: number; endMs: number };
export type LooseTiming = Range & {
  /** The times moved, a start before zero at zero; `written` is the timing line, unchanged where it can be. */
  moved(byMs: number): MovedTiming;
};
export type MovedTiming = Range & { written: string };

/** A timing line that may need spaces or digits; null for any other line, also one that is a fault. */
export function readLooseTiming(line: string): LooseTiming | null {
  if (!line.includes("-->")) return null;
  const [, indent, start, ...found] = TIMING.exec(line) ?? [];
  if (start === undefined) return null;
  const startMs = millis(...timeParts(found.slice(0, 4)));
  const endMs = millis(...timeParts(found.slice(7, 11)));
  if (startMs === null || endMs === null) return null;
  const [before, after, end = "", settings = ""] = [found[4], found[5], found[6], found[11]];
  const isWritten =
    indent === "" && before !== "" && after !== "" && readTime(start) !== null && readTime(end) !== null;
  const centered = settings.replace(ALIGN_MIDDLE, "$1center");
  const moved = (byMs: number): MovedTiming => {
    const times = { startMs: Math.max(0, startMs + byMs), endMs: endMs + byMs };
    if (byMs === 0 && isWritten && centered === settings) return { ...times, written: line };
    const written = times.endMs < 0 ? "" : `${formatTime(times.startMs)} --> ${formatTime(times.endMs)}${centered}`;
    return { ...times, written };
  };
  return { startMs, endMs, moved };
}

const timeParts = (parts: readonly (string | undefined)[]) => parts as Parameters<typeof millis>;

/** The timestamp tags of a text moved with its cue, and kept within it. */
export function shiftedTags(text: string, byMs: number, { startMs, endMs }: Range): string {
  if (!text.includes("<")) return text;
  return text.replace(TAG, (tag, time: string) => {
    const ms = readTime(time);
    return ms === null ? tag : `<${formatTime(Math.max(startMs, Math.min(endMs, ms + byMs)))}>`;
  });
}
