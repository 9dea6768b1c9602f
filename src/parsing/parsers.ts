import { readCsvPiece } from "../lib/csv-records.ts";
import { readHls } from "../lib/hls-read.ts";
import { atOnce } from "../lib/in-slices.ts";

/**
 * Parsers that run on parser threads, by name. A parser takes and returns values that structured clone can copy. It
 * throws TooComplex when the document exceeds one of its limits; other faults of the document are part of its result.
 * To add one, add it here: `parseDocument` takes its types from this table.
 */
export const PARSERS = {
  csv: readCsvPiece,
  hls: ({ text }: { text: string }) => atOnce(readHls(text)),
};

export type ParserName = keyof typeof PARSERS;
export type ParserInput<N extends ParserName> = Parameters<(typeof PARSERS)[N]>[0];
export type ParserOutput<N extends ParserName> = Awaited<ReturnType<(typeof PARSERS)[N]>>;
