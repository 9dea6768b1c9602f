import { DOCUMENT_LIMITS, requireAtMost, runToEnd, type Sliced } from "#lib/base";
import { hlsAttributes } from "./hls-attributes.ts";
import { linesOf } from "./lines-of.ts";
import { quoted } from "./m3u8.ts";
import { type MasterEdit, MasterLine } from "./master-edits.ts";

const LINES_PER_SLICE = 200;

/** A URI in a line: `from` and `to` delimit it without its quotes. */
type Place = { from: number; to: number; isQuoted: boolean };

/** The URI of a URI line, or the URI attributes of a tag (RFC 8216, 4.1 and 4.2). */
function* placesOf(line: string): Generator<Place, void> {
  if (!line.startsWith("#")) {
    if (line !== "") yield { from: 0, to: line.length, isQuoted: false };
    return;
  }
  const colon = line.indexOf(":");
  // Most tags are EXTINF, which has no attributes.
  if (!line.startsWith("#EXT") || colon === -1 || !line.includes('URI="')) return;
  for (const { name, isQuoted, from, to } of hlsAttributes(line, colon + 1))
    if (name === "URI" && isQuoted) yield { from, to, isQuoted };
}

/** A text before a URI, and the URI. */
type Piece = { before: string; uri: string; isQuoted: boolean };

/** A playlist that was read once, with the places of its URIs. */
export class PlaylistReferences {
  readonly #pieces: readonly Piece[];
  readonly #end: string;

  constructor(pieces: readonly Piece[], end: string) {
    this.#pieces = pieces;
    this.#end = end;
  }

  /** Every URI that it refers to, in order. */
  get uris(): string[] {
    return this.#pieces.map(({ uri }) => uri);
  }

  /** The playlist with other URIs, and LF at the end of lines. Throws TooComplex when it becomes too large. */
  *written(map: (uri: string) => string): Sliced<string> {
    const texts: string[] = [];
    let characters = this.#end.length + 1;
    for (const { before, uri, isQuoted } of this.#pieces) {
      const mapped = isQuoted ? quoted(map(uri)).slice(1, -1) : map(uri);
      characters += before.length + mapped.length;
      requireAtMost(characters, DOCUMENT_LIMITS.outputCharacters, "characters after it is rewritten");
      if (texts.push(before, mapped) % LINES_PER_SLICE === 0) yield;
    }
    return texts.join("") + this.#end;
  }
}

/** Reads a playlist in slices. Linear in time. Throws TooComplex for a playlist beyond the limits. */
export function* readReferences(playlist: string): Sliced<PlaylistReferences> {
  const pieces: Piece[] = [];
  let before = "";
  let lines = 0;
  for (const line of linesOf(playlist)) {
    if (lines > 0) before += "\n";
    let done = 0;
    for (const { from, to, isQuoted } of placesOf(line)) {
      requireAtMost(pieces.length + 1, DOCUMENT_LIMITS.playlistReferences, "references");
      pieces.push({ before: before + line.slice(done, from), uri: line.slice(from, to), isQuoted });
      before = "";
      done = to;
    }
    before += line.slice(done);
    if (++lines % LINES_PER_SLICE === 0) yield;
  }
  return new PlaylistReferences(pieces, before);
}

/** Every URI that a playlist refers to, in order. Throws TooComplex. */
export const references = (playlist: string): string[] => runToEnd(readReferences(playlist)).uris;

/** Applies `map` to every URI of a master playlist. Throws TooComplex for a playlist beyond the limits. */
export const withReferences =
  (map: (uri: string) => string): MasterEdit =>
  (lines) => {
    let characters = 0;
    let count = 0;
    return lines.map((line) => {
      const text = mapped(line.text, (uri) => {
        requireAtMost(++count, DOCUMENT_LIMITS.playlistReferences, "references");
        return map(uri);
      });
      characters += text.length + 1;
      requireAtMost(characters, DOCUMENT_LIMITS.outputCharacters, "characters after it is rewritten");
      return text === line.text ? line : new MasterLine(text);
    });
  };

function mapped(line: string, map: (uri: string) => string): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { from, to, isQuoted } of placesOf(line)) {
    const uri = map(line.slice(from, to));
    pieces.push(line.slice(done, from), isQuoted ? quoted(uri).slice(1, -1) : uri);
    done = to;
  }
  return done === 0 ? line : [...pieces, line.slice(done)].join("");
}
