import type { Sliced } from "#lib/base/web";
import type { Cue } from "./parse.ts";
import { formatTime, readTime } from "./time.ts";

const PER_STEP = 100;
/** WebVTT, 4.2.2: a timestamp tag, which delays the text that follows it. */
const INNER = /<((?:\d{2,}:)?\d{2}:\d{2}\.\d{3})>/g;

type Timing = { startMs: number; endMs: number };

/**
 * Replaces the times of a WebVTT text that `parsing` has parsed; all other bytes are unchanged. Timestamp tags keep
 * their offset in the cue. Hours are written where the original had them, and where needed.
 */
export function* retimed(source: string, cues: readonly Cue[], timings: readonly Timing[]): Sliced<string> {
  const written = (at: { from: number; to: number }) => source.slice(at.from, at.to);
  const isShort = (time: string) => time.length === "00:00.000".length;
  const leavesHoursOut = cues.some((cue) => isShort(written(cue.startAt)) || isShort(written(cue.endAt)));
  const inStyleOf = (time: string, ms: number) => {
    const whole = formatTime(ms);
    // In a file that omits hours where it can, an hour that is no longer needed is dropped.
    const isOptional = isShort(time) || (leavesHoursOut && !time.startsWith("00:"));
    if (isOptional && whole.startsWith("00:") && whole.length === "00:00:00.000".length) return whole.slice(3);
    return whole.padStart(time.length, "0");
  };
  const pieces: string[] = [];
  let done = 0;
  const replace = (at: { from: number; to: number }, text: string) => {
    pieces.push(source.slice(done, at.from), text);
    done = at.to;
  };
  for (const [index, cue] of cues.entries()) {
    const { startMs, endMs } = timings[index] as Timing;
    replace(cue.startAt, inStyleOf(written(cue.startAt), startMs));
    replace(cue.endAt, inStyleOf(written(cue.endAt), endMs));
    const within = (ms: number) => {
      const share = (ms - cue.startMs) / (cue.endMs - cue.startMs);
      return Math.max(startMs, Math.min(endMs, Math.round(startMs + share * (endMs - startMs))));
    };
    const inner = (whole: string, time: string) => {
      const ms = readTime(time);
      return ms === null ? whole : `<${inStyleOf(time, within(ms))}>`;
    };
    if (cue.text.includes("<")) replace(cue.textAt, written(cue.textAt).replace(INNER, inner));
    if (index % PER_STEP === 0) yield;
  }
  pieces.push(source.slice(done));
  return pieces.join("");
}
