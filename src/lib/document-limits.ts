import { HttpError } from "./errors.ts";

/**
 * Limits for documents that clients write. Parsers, the threads that run them and the table in docs/api.md take them
 * from here. Characters are UTF-16 code units.
 */
export const DOCUMENT_LIMITS = {
  /** Of one document on a parser thread; the time it waits for one is not counted. */
  parseMs: 2000,
  /** V8 heap of a parser thread in MiB. */
  heapMebibytes: 192,
  /** Of a playlist, manifest or storyboard that is ingested. */
  documentBytes: 2 * 2 ** 20,
  /** Of one that is served: it may have been stored before there were limits. */
  servedBytes: 4 * 2 ** 20,
  /** Of all documents that one manifest of an ingest batch leads to. */
  batchDocumentBytes: 512 * 2 ** 20,
  /** Of a line of a playlist or storyboard. */
  lineCharacters: 65_536,
  playlistReferences: 100_000,
  playlistVariants: 1000,
  /** Groups of subtitles in a master playlist. */
  subtitleGroups: 100,
  xmlDepth: 40,
  xmlElements: 100_000,
  /** Of one element. */
  xmlAttributes: 100,
  /** Of a name or an attribute's value. */
  xmlAttributeCharacters: 8192,
  /** Segments that a DASH manifest names, counted once for each representation, those that are refused too. */
  mpdSegments: 200_000,
  /** Of their paths after templates are filled in. */
  mpdPathCharacters: 32 * 2 ** 20,
  storyboardTiles: 50_000,
  storyboardPictures: 5000,
  /** Of a document after its references are rewritten. */
  outputCharacters: 8 * 2 ** 20,
  cues: 50_000,
  csvBytes: 256 * 2 ** 20,
  csvRows: 500_000,
  csvColumns: 1000,
  /** Of a row as it is written. An unclosed quote must not gather the rest of the file. */
  csvRowBytes: 2 ** 20,
  /** A parser stops there. */
  faults: 20,
} as const;

/**
 * A document exceeds a limit. `limit` is a sentence that names it. The API answers 422 `document_too_complex`.
 */
export class TooComplex extends Error {
  constructor(limit: string) {
    super(limit);
    this.name = "TooComplex";
  }
}

/** Throws TooComplex when `value` is over `limit`; `what` completes "It has over 100 …". */
export function requireAtMost(value: number, limit: number, what: string): void {
  if (value > limit) throw new TooComplex(`It has over ${limit} ${what}.`);
}

/** The answer for it; `limit` is a sentence that names the limit. */
export const tooComplex = (limit: string): HttpError =>
  new HttpError(422, "document_too_complex", `The document is too complex: ${limit} Send a smaller or simpler one.`);
