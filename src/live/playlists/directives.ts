import { HttpError } from "#lib/base";
import type { TrackWindow } from "./track-window.ts";

/** Delivery directives of a request for a media playlist (draft-pantos-hls-rfc8216bis, 6.2.5). */
export type Directives = {
  /** Media Sequence Number and part index that the playlist must contain. Null without them. */
  msn: number | null;
  part: number | null;
  /** A delta update is acceptable. */
  skip: boolean;
};

/** 6.2.5.2: a request beyond is 400. */
const MAX_SEGMENTS_AHEAD = 2;
/** 6.2.5.2, the Advance Part Limit: 3 s of parts, and at least 3. */
const MIN_PARTS_AHEAD = 3;
const SECONDS_AHEAD = 3;

/** Reads them from the query; others are ignored. Throws an HttpError with status 400 `validation_failed`. */
export function readDirectives(query: URLSearchParams): Directives {
  const msn = numberOf(query, "_HLS_msn");
  const part = numberOf(query, "_HLS_part");
  if (part !== null && msn === null) throw invalid("_HLS_part needs _HLS_msn.");
  const skip = single(query, "_HLS_skip");
  if (skip !== null && skip !== "YES" && skip !== "v2") throw invalid("_HLS_skip is YES or v2.");
  return { msn, part, skip: skip !== null };
}

function single(query: URLSearchParams, name: string): string | null {
  const values = query.getAll(name);
  if (values.length > 1) throw invalid(`${name} occurs more than once.`);
  return values[0] ?? null;
}

/** A decimal-integer (4.2). */
function numberOf(query: URLSearchParams, name: string): number | null {
  const value = single(query, name);
  if (value === null) return null;
  if (!/^\d{1,15}$/.test(value)) throw invalid(`${name} is a whole number.`);
  return Number(value);
}

/** Throws an HttpError with status 400 for a playlist so far ahead that the request would only hold a connection. */
export function requireNear(track: TrackWindow, { msn, part }: Directives, partTargetSeconds: number): void {
  if (msn === null) return;
  if (msn > track.lastNumber + MAX_SEGMENTS_AHEAD)
    throw invalid(`_HLS_msn is over ${MAX_SEGMENTS_AHEAD} segments ahead; the last segment is ${track.lastNumber}.`);
  if (part === null || msn <= track.lastNumber) return;
  const limit = Math.max(MIN_PARTS_AHEAD, Math.ceil(SECONDS_AHEAD / partTargetSeconds));
  const listed = msn === track.lastNumber + 1 ? (track.open?.parts.listed.length ?? 0) : 0;
  if (part > listed - 1 + limit) throw invalid(`_HLS_part is over ${limit} parts ahead.`);
}

/** Whether the playlist contains what the directives ask for, or something later. */
export function contains(track: TrackWindow, { msn, part }: Directives): boolean {
  if (msn === null) return true;
  const last = track.lastNumber;
  const openParts = track.open?.parts.listed.length ?? 0;
  if (msn > last) return msn === last + 1 && part !== null && part < openParts;
  if (msn < last || part === null) return true;
  // 6.2.5.2: an index after the final part of a segment means part 0 of the next.
  return part < track.parts(msn).length || openParts > 0;
}

const invalid = (message: string) => new HttpError(400, "validation_failed", message);
