/**
 * Reads a live media playlist line by line (draft-pantos-hls-rfc8216bis, 4.4). It shares no code with the program, and
 * keeps what a validator compares.
 */

export type ParsedPart = { uri: string; durationSeconds: number; isIndependent: boolean };
export type ParsedSegment = {
  number: number;
  isDiscontinuous: boolean;
  /** EXT-X-GAP: it cannot be requested. */
  isGap: boolean;
  date: number | null;
  parts: ParsedPart[];
  /** Null for the segment at the end that is not complete. */
  complete: { uri: string; durationSeconds: number } | null;
};
export type ParsedReport = { uri: string; lastMsn: number; lastPart: number | null };
export type ParsedPlaylist = {
  version: number;
  target: number;
  partTarget: number | null;
  control: Map<string, string>;
  sequence: number;
  discontinuitySequence: number;
  isIndependent: boolean;
  map: string | null;
  skipped: number;
  segments: ParsedSegment[];
  /** EXT-X-DISCONTINUITY after the last segment and part. */
  hasTrailingDiscontinuity: boolean;
  hint: string | null;
  reports: ParsedReport[];
  isEnded: boolean;
};

export function parseLivePlaylist(text: string): ParsedPlaylist {
  const lines = text.split("\n");
  if (lines.shift() !== "#EXTM3U") throw new Error("The playlist does not begin with #EXTM3U.");
  if (lines.pop() !== "") throw new Error("The playlist does not end with a line feed.");
  const playlist: ParsedPlaylist = {
    version: 1,
    target: 0,
    partTarget: null,
    control: new Map(),
    sequence: 0,
    discontinuitySequence: 0,
    isIndependent: false,
    map: null,
    skipped: 0,
    segments: [],
    hasTrailingDiscontinuity: false,
    hint: null,
    reports: [],
    isEnded: false,
  };
  const empty = (): ParsedSegment => ({
    number: 0,
    isDiscontinuous: false,
    isGap: false,
    date: null,
    parts: [],
    complete: null,
  });
  let segment = empty();
  let duration: number | null = null;
  const seen = new Set<string>();
  for (const line of lines) {
    if (!line.startsWith("#")) {
      if (duration === null) throw new Error(`A URI without EXTINF: ${line}`);
      const number = playlist.sequence + playlist.skipped + playlist.segments.length;
      playlist.segments.push({ ...segment, number, complete: { uri: line, durationSeconds: duration } });
      segment = empty();
      duration = null;
      continue;
    }
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1);
    const attribute = (key: string) => attributesOf(value).get(key);
    const required = (key: string) => attribute(key) ?? fail(`${name} has no ${key}.`);
    if (ONCE.has(name)) {
      if (seen.has(name)) throw new Error(`${name} occurs twice.`);
      seen.add(name);
    }
    if (name === "#EXT-X-VERSION") playlist.version = numberOf(value);
    else if (name === "#EXT-X-TARGETDURATION") playlist.target = numberOf(value);
    else if (name === "#EXT-X-PART-INF") playlist.partTarget = numberOf(required("PART-TARGET"));
    else if (name === "#EXT-X-SERVER-CONTROL") playlist.control = attributesOf(value);
    else if (name === "#EXT-X-MEDIA-SEQUENCE") playlist.sequence = numberOf(value);
    else if (name === "#EXT-X-DISCONTINUITY-SEQUENCE") playlist.discontinuitySequence = numberOf(value);
    else if (name === "#EXT-X-INDEPENDENT-SEGMENTS") playlist.isIndependent = true;
    else if (name === "#EXT-X-MAP") playlist.map = required("URI");
    else if (name === "#EXT-X-SKIP") playlist.skipped = numberOf(required("SKIPPED-SEGMENTS"));
    else if (name === "#EXT-X-DISCONTINUITY") segment.isDiscontinuous = true;
    else if (name === "#EXT-X-GAP") segment.isGap = true;
    else if (name === "#EXT-X-PROGRAM-DATE-TIME") segment.date = Date.parse(value);
    else if (name === "#EXTINF") duration = numberOf(value.replace(/,.*$/, ""));
    else if (name === "#EXT-X-PART")
      segment.parts.push({
        uri: required("URI"),
        durationSeconds: numberOf(required("DURATION")),
        isIndependent: attribute("INDEPENDENT") === "YES",
      });
    else if (name === "#EXT-X-PRELOAD-HINT") playlist.hint = required("URI");
    else if (name === "#EXT-X-RENDITION-REPORT") {
      const part = attribute("LAST-PART");
      playlist.reports.push({
        uri: required("URI"),
        lastMsn: numberOf(required("LAST-MSN")),
        lastPart: part === undefined ? null : numberOf(part),
      });
    } else if (name === "#EXT-X-ENDLIST") playlist.isEnded = true;
    else throw new Error(`An unexpected tag: ${line}`);
  }
  if (duration !== null) throw new Error("EXTINF without a URI.");
  if (segment.parts.length > 0) {
    const number = playlist.sequence + playlist.skipped + playlist.segments.length;
    playlist.segments.push({ ...segment, number });
  } else playlist.hasTrailingDiscontinuity = segment.isDiscontinuous;
  return playlist;
}

const ONCE = new Set(
  "VERSION TARGETDURATION PART-INF SERVER-CONTROL MEDIA-SEQUENCE DISCONTINUITY-SEQUENCE INDEPENDENT-SEGMENTS MAP SKIP PRELOAD-HINT ENDLIST"
    .split(" ")
    .map((name) => `#EXT-X-${name}`),
);

function attributesOf(value: string): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const [, name, quoted, plain] of value.matchAll(/([A-Z0-9-]+)=(?:"([^"]*)"|([^,]*))(?:,|$)/g))
    attributes.set(name as string, quoted ?? plain ?? "");
  return attributes;
}

function numberOf(value: string): number {
  if (!/^\d+(\.\d+)?$/.test(value)) throw new Error(`Not a number: ${value}`);
  return Number(value);
}

function fail(message: string): never {
  throw new Error(message);
}
