import { segmentFileName } from "#media/arguments.ts";

/** The DASH manifest: of a stream, in the folder of its tracks, and of the running one of a channel. */
export const LIVE_MANIFEST = "manifest.mpd";
/** The time of day of the server, next to the manifest of a stream. */
export const LIVE_TIME = "time";

/**
 * A partial segment has a URI of its own, relative to the folder of its track. It is no file, but a range of the file of
 * its segment. A byte range would do too, but a preload hint of one has no end (draft-pantos-hls-rfc8216bis, 4.4.5.3),
 * and proxies cache ranges badly.
 */
export const partName = (segment: number, part: number): string => `${String(segment).padStart(5, "0")}.${part}.m4s`;

/** The number of a segment; null for a name that no segment has. */
export const readSegmentName = (name: string): number | null => readNumber(name, segmentFileName);

/** What captions show in a segment. It is no file, but made for each request. */
export const captionName = (segment: number): string => `${String(segment).padStart(5, "0")}.vtt`;

/** The inverse of `captionName`; null for other names. */
export const readCaptionName = (name: string): number | null => readNumber(name, captionName);

function readNumber(name: string, nameOf: (segment: number) => string): number | null {
  const number = /^\d{5,15}\.\w+$/.test(name) ? Number.parseInt(name, 10) : null;
  return number !== null && nameOf(number) === name ? number : null;
}

/** The inverse of `partName`; null for other names. */
export function readPartName(name: string): { segment: number; part: number } | null {
  const [, segment, part] = /^(\d{5,15})\.(\d{1,4})\.m4s$/.exec(name) ?? [];
  if (segment === undefined || part === undefined) return null;
  const read = { segment: Number(segment), part: Number(part) };
  // One URI for each part: caches would keep others as copies.
  return partName(read.segment, read.part) === name ? read : null;
}
