import * as v from "valibot";
import { invalid } from "#lib/base";

const HOUR = 3600;
const MAX_SECONDS = 12 * HOUR;

export const ExpiresIn = v.optional(
  v.pipe(
    v.string(),
    v.regex(/^\d{1,9}$/, "must be a whole number of seconds"),
    v.transform(Number),
    v.description("Seconds, 60 to 43,200"),
  ),
);

/**
 * Validity of a token in seconds: as requested, else the greater of an hour and twice the video's duration, at most
 * twelve hours. The duration of a live stream is Infinity. Throws 422 for a request outside of the limits.
 */
export function tokenSeconds(durationSeconds: number, requested: number | undefined): number {
  if (requested === undefined) return Math.min(MAX_SECONDS, Math.max(HOUR, Math.ceil(durationSeconds * 2)));
  if (requested < 60 || requested > MAX_SECONDS) invalid("expires_in", `must be between 60 and ${MAX_SECONDS} seconds`);
  return requested;
}
