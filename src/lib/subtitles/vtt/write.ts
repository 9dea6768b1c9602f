import type { Cue } from "./parse.ts";
import { formatTime } from "./time.ts";

export type PlainCue = Pick<Cue, "id" | "startMs" | "endMs" | "settings" | "text">;

/**
 * A cue as a block. Its text must not contain a blank line or an arrow, and its id and settings no line break.
 * @example
 * writeCue({ id: null, startMs: 1000, endMs: 2500, settings: "", text: "Hello" }) // => "00:00:01.000 --> 00:00:02.500\nHello"
 */
export function writeCue({ id, startMs, endMs, settings, text }: PlainCue): string {
  const timing = `${formatTime(startMs)} --> ${formatTime(endMs)}${settings && ` ${settings}`}`;
  return `${id === null ? "" : `${id}\n`}${timing}\n${text}`;
}
