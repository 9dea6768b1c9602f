import { syncTexts } from "../lib/align/sync-texts.ts";
import { readCsvPiece } from "../lib/csv-records.ts";
import { checkHls } from "../lib/hls-check.ts";
import { readHls } from "../lib/hls-read.ts";
import { type MpdContent, readMpd } from "../lib/mpd-read.ts";
import { type Below, rebaseMaster, rebaseMpd, rebaseStoryboard, storyboardJson } from "../lib/rebase.ts";
import { storyboardPictures } from "../lib/storyboard.ts";
import { runToEnd } from "../lib/time-slices.ts";
import { parsing } from "../lib/vtt/parse.ts";
import { payloadsOf } from "../lib/vtt/replace-texts.ts";
import { checkSubtitleFile, checkVtt } from "../lib/vtt/subtitle-file.ts";
import { readXml } from "../lib/xml-read.ts";
import { XmlFault } from "../lib/xml-tokens.ts";

/** Of a document in storage, which was checked before or is written by an encoder: what is no UTF-8 is replaced. */
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

const REBASED = { master: rebaseMaster, mpd: rebaseMpd, storyboard: rebaseStoryboard };
export type Rebased = keyof typeof REBASED;

/**
 * Parsers that run on parser threads, by name. A parser takes and returns values that structured clone can copy; long
 * arrays are fields of its result, and long texts are buffers. It throws TooComplex when the document exceeds one of its
 * limits; other faults of the document are part of its result. To add one, add it here: `parseDocument` takes its types
 * from this table, and test/parsing/hostile-documents.ts needs hostile documents for it.
 */
export const PARSERS = {
  /** An HLS playlist for a check. */
  hls: checkHls,

  /** An HLS playlist in storage, for finding a segment. */
  hlsSegments({ bytes }: { bytes: Uint8Array }) {
    const { isMaster, variants, segments } = readHls(textOf(bytes));
    return { isMaster, variants, segments };
  },

  /** A DASH manifest for a check. `malformed` says why it is no XML. */
  mpd({
    text,
    path,
    stored,
  }: {
    text: string;
    path: string;
    stored: number;
  }): MpdContent & { malformed: string | null } {
    try {
      return { ...readMpd(readXml(text), path, stored), malformed: null };
    } catch (error) {
      if (!(error instanceof XmlFault)) throw error;
      return { references: [], faults: [], malformed: error.message };
    }
  },

  /** A storyboard for a check. */
  storyboard: ({ text }: { text: string }) => ({ pictures: storyboardPictures(text) }),

  /** A top manifest or storyboard in storage, as it is sent. */
  rebase: ({ what, bytes, below }: { what: Rebased; bytes: Uint8Array; below: Below }) =>
    Buffer.from(REBASED[what](textOf(bytes), below)),

  /** A storyboard in storage, as JSON. */
  storyboardJson: ({ bytes, ...options }: { bytes: Uint8Array } & Parameters<typeof storyboardJson>[1]) =>
    Buffer.from(storyboardJson(textOf(bytes), options)),

  /** A WebVTT text for a check. */
  vtt: ({ text }: { text: string }) => checkVtt(text),

  /** A WebVTT or SubRip file for a check. */
  subtitleFile: (file: { filename: string; bytes: Uint8Array }) => checkSubtitleFile(file),

  /** A WebVTT text with the times of another. */
  syncTexts,

  /** The payloads of the cues of a WebVTT text, and where they are in it. */
  payloads({ text }: { text: string }) {
    const { cues } = runToEnd(parsing(text));
    return { payloads: payloadsOf(text, cues), places: cues.map(({ textAt }) => ({ textAt })) };
  },

  /** A piece of a CSV file. */
  csv: readCsvPiece,
};

export type ParserName = keyof typeof PARSERS;
export type ParserInput<N extends ParserName> = Parameters<(typeof PARSERS)[N]>[0];
export type ParserOutput<N extends ParserName> = Awaited<ReturnType<(typeof PARSERS)[N]>>;
