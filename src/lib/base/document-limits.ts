import { HttpError } from "./errors.ts";

/**
 * Limits for documents that clients write. Parsers, their threads and the table in docs/api.md use them. Characters are
 * UTF-16 code units.
 */
export const DOCUMENT_LIMITS = {
  /** Per document on a parser thread, without the time in the queue. */
  parseMs: 2000,
  /** V8 heap of a parser thread in MiB. */
  heapMebibytes: 192,
  /** Size of a playlist, manifest or storyboard at ingest. */
  documentBytes: 2 * 2 ** 20,
  /** Size of one that is served: it may have been stored before limits existed. */
  servedBytes: 4 * 2 ** 20,
  /** All documents together that one manifest of a batch upload refers to. */
  batchDocumentBytes: 512 * 2 ** 20,
  /** Length of a line of a playlist or storyboard. */
  lineCharacters: 65_536,
  playlistReferences: 100_000,
  playlistVariants: 1000,
  /** Subtitle groups in a master playlist. */
  subtitleGroups: 100,
  xmlDepth: 40,
  xmlElements: 100_000,
  /** Attributes of one element. */
  xmlAttributes: 100,
  /** Length of a name or an attribute value. */
  xmlAttributeCharacters: 8192,
  /** Segments of a DASH manifest, counted for each representation, refused ones included. */
  mpdSegments: 200_000,
  /** Length of their paths after templates are expanded. */
  mpdPathCharacters: 32 * 2 ** 20,
  storyboardTiles: 50_000,
  storyboardImages: 5000,
  /** Size of a document after its references are rewritten. */
  outputCharacters: 8 * 2 ** 20,
  cues: 50_000,
  csvBytes: 256 * 2 ** 20,
  csvRows: 500_000,
  csvColumns: 1000,
  /** Size of a row in the file. An unclosed quote must not collect the rest of the file. */
  csvRowBytes: 2 ** 20,
  /** A parser stops after this many faults. */
  faults: 20,
} as const;

/** Size of the text of a subtitle in UTF-8. */
export const MAX_SUBTITLE_BYTES = 2_000_000;

/** A document exceeds a limit. `limit` is a sentence that names it. The API answers 422 `document_too_complex`. */
export class TooComplex extends Error {
  constructor(limit: string) {
    super(limit);
    this.name = "TooComplex";
  }
}

/** Throws TooComplex when `value` exceeds `limit`; `what` completes "It has over 100 …". */
export function requireAtMost(value: number, limit: number, what: string): void {
  if (value > limit) throw new TooComplex(`It has over ${limit} ${what}.`);
}

/** The HTTP error for it; `limit` is a sentence that names the limit. */
export const tooComplex = (limit: string): HttpError =>
  new HttpError(422, "document_too_complex", `The document is too complex: ${limit} Send a smaller or simpler one.`);
