import { DOCUMENT_LIMITS, requireAtMost } from "./document-limits.ts";
import { hlsAttributes } from "./hls-attributes.ts";
import { linesOf } from "./lines-of.ts";

/** Inclusive byte positions in a resource. */
export type Span = { start: number; end: number };
/** `playlist`: to be read next. `line` counts from 1. */
export type HlsReference = { line: number; uri: string; kind: "playlist" | "object"; span?: Span };
export type HlsVariant = { uri: string; attributes: Map<string, string> };
/** A media segment (4.3.2) and what is needed to decode it. `map` is its EXT-X-MAP. */
export type HlsSegment = {
  uri: string;
  span: Span | null;
  durationSeconds: number;
  map: { uri: string; span: Span | null } | null;
  isEncrypted: boolean;
};
export type HlsFault = {
  line: number;
  code: "playlist_malformed" | "playlist_not_ended" | "playlist_unsupported";
  message: string;
};
export type HlsPlaylist = {
  isMaster: boolean;
  references: HlsReference[];
  variants: HlsVariant[];
  segments: HlsSegment[];
  durationSeconds: number;
  faults: HlsFault[];
};

/** Each playlist once, as its first variant describes it: the others have the same video with another group of audio. */
export function uniqueVariants(variants: readonly HlsVariant[]): HlsVariant[] {
  const seen = new Set<string>();
  return variants.filter(({ uri }) => !seen.has(uri) && seen.add(uri));
}

/** Content that would change after the check, or redirect a player elsewhere (draft-pantos-hls-rfc8216bis, 4.4). */
const UNSUPPORTED = /^#EXT-X-(DEFINE|CONTENT-STEERING|SKIP|PART|PRELOAD-HINT|RENDITION-REPORT|SERVER-CONTROL)\b/;
const WITH_URI = new Set(
  "MEDIA I-FRAME-STREAM-INF SESSION-DATA SESSION-KEY KEY MAP DATERANGE IMAGE-STREAM-INF"
    .split(" ")
    .map((name) => `#EXT-X-${name}`),
);
const TO_PLAYLIST = new Set(["#EXT-X-MEDIA", "#EXT-X-I-FRAME-STREAM-INF", "#EXT-X-IMAGE-STREAM-INF"]);

/**
 * All references of a complete playlist (RFC 8216, 4.3), and its faults. Linear in time; stops after a fixed number of
 * faults. Throws TooComplex.
 */
export function readHls(text: string): HlsPlaylist {
  const playlist: HlsPlaylist = {
    ...{ isMaster: false, references: [], variants: [], segments: [] },
    ...{ durationSeconds: 0, faults: [] },
  };
  const { references, variants, segments, faults } = playlist;
  let pending: "variant" | "segment" | null = null;
  let attributes = new Map<string, string>();
  let range: { length: number; offset: number | null } | null = null;
  let last = null as { uri: string; end: number } | null;
  let map: HlsSegment["map"] = null;
  let isEncrypted = false;
  let durationSeconds = 0;
  let ended = false;
  let line = 0;
  const wrong = (code: HlsFault["code"], message: string) => {
    faults.push({ line, code, message });
  };
  const refer = (reference: Omit<HlsReference, "line">) => {
    requireAtMost(references.length + 1, DOCUMENT_LIMITS.playlistReferences, "references");
    references.push({ line, ...reference });
  };
  for (const raw of linesOf(text)) {
    line++;
    if (faults.length >= DOCUMENT_LIMITS.faults) return playlist;
    const content = raw.trim();
    // No byte order mark either (section 4).
    if (line === 1 && raw.trimEnd() !== "#EXTM3U") {
      wrong("playlist_malformed", "The first line is not #EXTM3U.");
      return playlist;
    }
    if (content === "" || (content.startsWith("#") && !content.startsWith("#EXT"))) continue;
    if (!content.startsWith("#")) {
      if (pending === "variant") {
        requireAtMost(variants.length + 1, DOCUMENT_LIMITS.playlistVariants, "variants");
        variants.push({ uri: content, attributes });
        refer({ uri: content, kind: "playlist" });
      } else if (pending === "segment") {
        const span: Span | null = range ? spanOf(range, last?.uri === content ? last.end : null) : null;
        if (range && !span)
          wrong(
            "playlist_malformed",
            "A byte range has no offset, and the previous segment is not in the same file; expected LENGTH@OFFSET.",
          );
        refer({ uri: content, kind: "object", ...(span && { span }) });
        segments.push({ uri: content, span, durationSeconds, map, isEncrypted });
        last = span && { uri: content, end: span.end };
      } else wrong("playlist_malformed", "A URI without #EXTINF or #EXT-X-STREAM-INF before it.");
      pending = null;
      range = null;
      continue;
    }
    if (UNSUPPORTED.test(content)) wrong("playlist_unsupported", `${UNSUPPORTED.exec(content)?.[0]} is not supported.`);
    else if (content.startsWith("#EXT-X-STREAM-INF:")) {
      pending = "variant";
      attributes = attributesOf(content);
      playlist.isMaster = true;
    } else if (content.startsWith("#EXTINF:")) {
      pending = "segment";
      const seconds = secondsOf(content);
      durationSeconds = seconds ?? 0;
      playlist.durationSeconds += durationSeconds;
      if (seconds === null)
        wrong("playlist_malformed", "#EXTINF has no duration; expected seconds, such as #EXTINF:4.0,");
    } else if (content.startsWith("#EXT-X-BYTERANGE:")) {
      range = rangeOf(content.slice(17));
      if (!range) wrong("playlist_malformed", "#EXT-X-BYTERANGE has no valid range; expected LENGTH or LENGTH@OFFSET.");
    } else if (content === "#EXT-X-ENDLIST") ended = true;
    else {
      const colon = content.indexOf(":");
      const tag = content.slice(0, Math.max(colon, 0));
      if (!WITH_URI.has(tag)) continue;
      const attributes = attributesOf(content);
      const kind = TO_PLAYLIST.has(tag) ? "playlist" : "object";
      if (kind === "playlist") playlist.isMaster = true;
      if (tag === "#EXT-X-KEY") {
        isEncrypted = attributes.get("METHOD") !== "NONE";
        if (isEncrypted && !attributes.has("URI")) wrong("playlist_malformed", "#EXT-X-KEY has no URI.");
      }
      if (tag === "#EXT-X-MAP" && !attributes.has("URI")) wrong("playlist_malformed", "#EXT-X-MAP has no URI.");
      for (const name of ["URI", "X-ASSET-URI", "X-ASSET-LIST"]) {
        const uri = attributes.get(name);
        if (uri === undefined) continue;
        const own = attributes.get("BYTERANGE");
        const range = own === undefined ? null : rangeOf(own);
        if (own !== undefined && !range)
          wrong("playlist_malformed", "BYTERANGE has no valid range; expected LENGTH or LENGTH@OFFSET.");
        const span = range && spanOf(range, null, 0);
        if (tag === "#EXT-X-MAP" && name === "URI") map = { uri, span };
        refer({ uri, kind, ...(span && { span }) });
      }
    }
  }
  if (pending !== null) wrong("playlist_malformed", "The playlist ends after a tag that needs a URI.");
  if (playlist.isMaster && segments.length > 0)
    wrong("playlist_malformed", "The playlist has both variants and segments.");
  if (playlist.isMaster && variants.length === 0) wrong("playlist_malformed", "The master playlist has no variant.");
  if (!playlist.isMaster && segments.length === 0) wrong("playlist_malformed", "The playlist has no segment.");
  if (!playlist.isMaster && !ended)
    wrong("playlist_not_ended", "The playlist has no #EXT-X-ENDLIST; only complete playlists can be imported.");
  return playlist;
}

const attributesOf = (line: string): Map<string, string> => {
  const attributes = hlsAttributes(line, line.indexOf(":") + 1);
  return new Map([...attributes].map(({ name, value }) => [name, value]));
};

/** Longer than any segment; keeps sums exact. */
function secondsOf(line: string): number | null {
  const [, digits = ""] = /^#EXTINF:(\d{0,9}(?:\.\d{0,20})?)/.exec(line) ?? [];
  return /\d/.test(digits) ? Number(digits) : null;
}

function rangeOf(value: string): { length: number; offset: number | null } | null {
  const [, length, offset] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(value.trim()) ?? [];
  if (length === undefined || Number(length) === 0) return null;
  return { length: Number(length), offset: offset === undefined ? null : Number(offset) };
}

/** 4.3.2.2: without an offset, the range begins where the previous one of the same resource ended. */
function spanOf(
  range: { length: number; offset: number | null },
  before: number | null,
  otherwise?: number,
): Span | null {
  const start = range.offset ?? (before === null ? otherwise : before + 1);
  return start === undefined ? null : { start, end: start + range.length - 1 };
}
