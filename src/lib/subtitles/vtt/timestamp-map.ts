import { millis } from "./time.ts";

/** RFC 8216, 3.5, with what other tools write: spaces, lower case, and a colon for the equals sign. */
const MAP = /^[ \t]*X-TIMESTAMP-MAP[ \t]*[=:]/i;
const ANYWHERE = /X-TIMESTAMP-MAP/i;
const IN_LINE = /[ \t]X-TIMESTAMP-MAP[ \t]*[=:]/i;
const LOCAL = /LOCAL[ \t]*[=:][ \t]*(?:(\d{1,5}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,9}))?(?![\d:])/i;
const LONGEST_MAP = 300;

/**
 * `localMs` of a line that is an X-TIMESTAMP-MAP: the cue time that is the start of the media. Null when the line has no
 * LOCAL that can be read. Undefined for any other line.
 */
export function readTimestampMap(line: string): { localMs: number | null } | undefined {
  if (!MAP.test(line)) return undefined;
  const [, hours, minutes, seconds, fraction = ""] = LOCAL.exec(line.slice(0, LONGEST_MAP)) ?? [];
  return { localMs: millis(hours, minutes, seconds, fraction.slice(0, 3).padEnd(3, "0")) };
}

/** Whether any line of a text may be one. */
export const hasTimestampMap = (text: string): boolean => ANYWHERE.test(text);

/** Where an X-TIMESTAMP-MAP begins behind other text of a line; -1 for none. */
export const timestampMapAt = (line: string): number => line.search(IN_LINE);
