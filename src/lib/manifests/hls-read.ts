import { DOCUMENT_LIMITS, requireAtMost } from "#lib/base";
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
 * @example
 * const text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n";
 * const { durationSeconds, segments, faults } = readHls(text);
 * [durationSeconds, segments.length, faults] // => [4, 1, []]
 */
export function readHls(text: string): HlsPlaylist {
  const reader = new PlaylistReader();
  for (const line of linesOf(text)) if (!reader.read(line)) return reader.playlist;
  reader.end();
  return reader.playlist;
}

type ByteRange = { length: number; offset: number | null };

class PlaylistReader {
  readonly playlist: HlsPlaylist = {
    isMaster: false,
    references: [],
    variants: [],
    segments: [],
    durationSeconds: 0,
    faults: [],
  };
  #line = 0;
  /** What the next URI is. */
  #pending: "variant" | "segment" | null = null;
  #attributes = new Map<string, string>();
  #range: ByteRange | null = null;
  #last: { uri: string; end: number } | null = null;
  #map: HlsSegment["map"] = null;
  #isEncrypted = false;
  #durationSeconds = 0;
  #isEnded = false;

  /** Reads the next line; false when the rest is not to be read. */
  read(raw: string): boolean {
    this.#line++;
    if (this.playlist.faults.length >= DOCUMENT_LIMITS.faults) return false;
    // No byte order mark either (section 4).
    if (this.#line === 1 && raw.trimEnd() !== "#EXTM3U") {
      this.#wrong("playlist_malformed", "The first line is not #EXTM3U.");
      return false;
    }
    const content = raw.trim();
    if (content === "") return true;
    if (!content.startsWith("#")) this.#readUri(content);
    else if (content.startsWith("#EXT")) this.#readTag(content);
    return true;
  }

  /** Checks what only the whole playlist shows. */
  end(): void {
    const { isMaster, variants, segments } = this.playlist;
    const malformed = (message: string) => this.#wrong("playlist_malformed", message);
    if (this.#pending !== null) malformed("The playlist ends after a tag that needs a URI.");
    if (isMaster && segments.length > 0) malformed("The playlist has both variants and segments.");
    if (isMaster && variants.length === 0) malformed("The master playlist has no variant.");
    if (!isMaster && segments.length === 0) malformed("The playlist has no segment.");
    if (!isMaster && !this.#isEnded)
      this.#wrong("playlist_not_ended", "The playlist has no #EXT-X-ENDLIST; only complete playlists can be imported.");
  }

  #readUri(uri: string): void {
    if (this.#pending === "variant") this.#addVariant(uri);
    else if (this.#pending === "segment") this.#addSegment(uri);
    else this.#wrong("playlist_malformed", "A URI without #EXTINF or #EXT-X-STREAM-INF before it.");
    this.#pending = null;
    this.#range = null;
  }

  #addVariant(uri: string): void {
    const { variants } = this.playlist;
    requireAtMost(variants.length + 1, DOCUMENT_LIMITS.playlistVariants, "variants");
    variants.push({ uri, attributes: this.#attributes });
    this.#refer({ uri, kind: "playlist" });
  }

  #addSegment(uri: string): void {
    const previousEnd = this.#last?.uri === uri ? this.#last.end : null;
    const span = this.#range ? spanOf(this.#range, previousEnd) : null;
    if (this.#range && !span)
      this.#wrong(
        "playlist_malformed",
        "A byte range has no offset, and the previous segment is not in the same file; expected LENGTH@OFFSET.",
      );
    this.#refer({ uri, kind: "object", ...(span && { span }) });
    this.playlist.segments.push({
      uri,
      span,
      durationSeconds: this.#durationSeconds,
      map: this.#map,
      isEncrypted: this.#isEncrypted,
    });
    this.#last = span && { uri, end: span.end };
  }

  #readTag(content: string): void {
    const unsupported = UNSUPPORTED.exec(content);
    if (unsupported) this.#wrong("playlist_unsupported", `${unsupported[0]} is not supported.`);
    else if (content.startsWith("#EXT-X-STREAM-INF:")) {
      this.#pending = "variant";
      this.#attributes = attributesOf(content);
      this.playlist.isMaster = true;
    } else if (content.startsWith("#EXTINF:")) this.#readDuration(content);
    else if (content.startsWith("#EXT-X-BYTERANGE:")) {
      this.#range = rangeOf(content.slice(17));
      if (!this.#range)
        this.#wrong("playlist_malformed", "#EXT-X-BYTERANGE has no valid range; expected LENGTH or LENGTH@OFFSET.");
    } else if (content === "#EXT-X-ENDLIST") this.#isEnded = true;
    else this.#readAttributes(content);
  }

  #readDuration(content: string): void {
    this.#pending = "segment";
    const seconds = secondsOf(content);
    this.#durationSeconds = seconds ?? 0;
    this.playlist.durationSeconds += this.#durationSeconds;
    if (seconds === null)
      this.#wrong("playlist_malformed", "#EXTINF has no duration; expected seconds, such as #EXTINF:4.0,");
  }

  /** A tag whose attributes may contain URIs. */
  #readAttributes(content: string): void {
    const tag = content.slice(0, Math.max(content.indexOf(":"), 0));
    if (!WITH_URI.has(tag)) return;
    const attributes = attributesOf(content);
    const kind = TO_PLAYLIST.has(tag) ? "playlist" : "object";
    if (kind === "playlist") this.playlist.isMaster = true;
    if (tag === "#EXT-X-KEY") this.#isEncrypted = attributes.get("METHOD") !== "NONE";
    const needsUri = tag === "#EXT-X-MAP" || (tag === "#EXT-X-KEY" && this.#isEncrypted);
    if (needsUri && !attributes.has("URI")) this.#wrong("playlist_malformed", `${tag} has no URI.`);
    for (const name of ["URI", "X-ASSET-URI", "X-ASSET-LIST"]) {
      const uri = attributes.get(name);
      if (uri === undefined) continue;
      const span = this.#spanIn(attributes);
      if (tag === "#EXT-X-MAP" && name === "URI") this.#map = { uri, span };
      this.#refer({ uri, kind, ...(span && { span }) });
    }
  }

  /** The BYTERANGE of a tag, which begins at 0 by default (4.3.2.5). */
  #spanIn(attributes: Map<string, string>): Span | null {
    const own = attributes.get("BYTERANGE");
    if (own === undefined) return null;
    const range = rangeOf(own);
    if (!range) this.#wrong("playlist_malformed", "BYTERANGE has no valid range; expected LENGTH or LENGTH@OFFSET.");
    return range && spanOf(range, null, 0);
  }

  #wrong(code: HlsFault["code"], message: string): void {
    this.playlist.faults.push({ line: this.#line, code, message });
  }

  #refer(reference: Omit<HlsReference, "line">): void {
    const { references } = this.playlist;
    requireAtMost(references.length + 1, DOCUMENT_LIMITS.playlistReferences, "references");
    references.push({ line: this.#line, ...reference });
  }
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

function rangeOf(value: string): ByteRange | null {
  const [, length, offset] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(value.trim()) ?? [];
  if (length === undefined || Number(length) === 0) return null;
  return { length: Number(length), offset: offset === undefined ? null : Number(offset) };
}

/** 4.3.2.2: without an offset, the range begins where the previous one of the same resource ended. */
function spanOf(range: ByteRange, before: number | null, otherwise?: number): Span | null {
  const start = range.offset ?? (before === null ? otherwise : before + 1);
  return start === undefined ? null : { start, end: start + range.length - 1 };
}
