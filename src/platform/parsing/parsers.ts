import { runToEnd } from "#lib/base";
import {
  type Below,
  type ClipPlaylist,
  type CutRange,
  checkHls,
  clipPlaylists,
  clipped,
  cutAlong,
  cutMain,
  cutMpd,
  type MpdContent,
  readHls,
  readMpd,
  rebaseMaster,
  rebaseMpd,
  rebaseStoryboard,
  type SharedMedia,
  storyboardImages,
  storyboardJson,
  type TimeRange,
} from "#lib/manifests";
import { captionSections } from "#lib/search";
import {
  asParagraphs,
  checkSubtitleFile,
  checkVtt,
  clippedVtt,
  parsing,
  payloadsOf,
  spokenCues,
  syncTexts,
} from "#lib/subtitles";
import { readXml, XmlFault } from "#lib/xml";
import { readCsvPiece } from "./csv-records.ts";
import { checkedWords, editedWords, wordsJson } from "./spoken-words.ts";

/** For a document in storage, which was checked at ingest or written by an encoder: invalid UTF-8 is replaced. */
const textOf = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** How a media playlist is cut: the first one decides the range of the clip. */
type PlaylistCut = { around: TimeRange } | { kind: ClipPlaylist["kind"]; range: CutRange };

const REBASED = { master: rebaseMaster, mpd: rebaseMpd, storyboard: rebaseStoryboard };
export type Rebased = keyof typeof REBASED;

/**
 * Parsers that run on parser threads, by name. A parser takes and returns values that structured clone can copy; long
 * arrays are fields of its result, and long texts are buffers. It throws TooComplex when the document exceeds a limit;
 * other faults of the document are part of its result. To add a parser, add it here: `parseDocument` derives its types
 * from this table, and test/suites/load/hostile-documents.ts needs hostile documents for it.
 */
export const PARSERS = {
  /** Checks an HLS playlist. */
  hls: checkHls,

  /** Reads an HLS playlist in storage, to find a segment. */
  hlsSegments({ bytes }: { bytes: Uint8Array }) {
    const { isMaster, variants, segments } = readHls(textOf(bytes));
    return { isMaster, variants, segments };
  },

  /** Checks a DASH manifest. `malformed` says why it is not XML. */
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

  /** Checks a storyboard. */
  storyboard: ({ text }: { text: string }) => ({ images: storyboardImages(text) }),

  /** Rewrites a top manifest or storyboard in storage for delivery. */
  rebase: ({ what, bytes, below }: { what: Rebased; bytes: Uint8Array; below: Below }) =>
    Buffer.from(REBASED[what](textOf(bytes), below)),

  /** Converts a storyboard in storage to JSON. */
  storyboardJson: ({ bytes, ...options }: { bytes: Uint8Array } & Parameters<typeof storyboardJson>[1]) =>
    Buffer.from(storyboardJson(textOf(bytes), options)),

  /** The playlists of a master playlist in storage that a clip needs. */
  clipMaster: ({ bytes, path }: { bytes: Uint8Array; path: string }) =>
    clipped(() => ({ playlists: clipPlaylists(textOf(bytes), path) })),

  /** Cuts a media playlist in storage: to whole segments around `around`, or to exactly `range`, as one of `kind`. */
  clipPlaylist: ({ bytes, path, ...cut }: { bytes: Uint8Array; path: string } & PlaylistCut) =>
    clipped(() =>
      "around" in cut
        ? cutMain(textOf(bytes), path, cut.around)
        : cutAlong(textOf(bytes), { kind: cut.kind, path }, cut.range),
    ),

  /** Cuts a DASH manifest in storage. */
  clipMpd: ({
    bytes,
    path,
    range,
    shared,
  }: {
    bytes: Uint8Array;
    path: string;
    range: CutRange;
    shared: SharedMedia;
  }) => clipped(() => ({ text: Buffer.from(cutMpd(textOf(bytes), path, range, shared)) })),

  /** Cuts a subtitle in storage. */
  clipVtt({ bytes, startMs, endMs }: { bytes: Uint8Array; startMs: number; endMs: number }) {
    const { text, cues } = runToEnd(clippedVtt(textOf(bytes), { startMs, endMs }));
    return { text: Buffer.from(text), cues };
  },

  /** Cuts a storyboard in storage. */
  clipStoryboard({ bytes, startMs, endMs }: { bytes: Uint8Array; startMs: number; endMs: number }) {
    const { text } = runToEnd(clippedVtt(textOf(bytes), { startMs, endMs }));
    return { text: Buffer.from(text), images: storyboardImages(text) ?? [] };
  },

  /** Checks a WebVTT text. */
  vtt: ({ text }: { text: string }) => checkVtt(text),

  /** Checks a WebVTT or SubRip file. */
  subtitleFile: (file: { filename: string; bytes: Uint8Array }) => checkSubtitleFile(file),

  /** Re-times a WebVTT text to another one. */
  syncTexts,

  /** The payloads of the cues of a WebVTT text, and their positions. */
  payloads({ text }: { text: string }) {
    const { cues } = runToEnd(parsing(text));
    return { payloads: payloadsOf(text, cues), places: cues.map(({ textAt }) => ({ textAt })) };
  },

  /** Checks the times of words, and compresses them. */
  spokenWords: ({ bytes }: { bytes: Uint8Array }) => checkedWords(textOf(bytes)),

  /** The times of the words of a WebVTT text that was edited, from those in the database. */
  editedWords: ({ text, words }: { text: string; words: Uint8Array }) => ({ words: editedWords(text, words) }),

  /** Times of words from the database, as JSON with this language. */
  wordsTranscript: ({ words, language }: { words: Uint8Array; language: string }) => ({
    body: Buffer.from(wordsJson(words, language)),
  }),

  /** What is said in a WebVTT text: as text, or as JSON with the times of cues and this language. */
  transcript({ text, asJson }: { text: string; asJson: string | null }) {
    const cues = runToEnd(spokenCues(text));
    return { body: Buffer.from(asJson === null ? asParagraphs(cues) : JSON.stringify({ language: asJson, cues })) };
  },

  /** The rows of the search index for a WebVTT text in storage. */
  searchSections: ({ bytes, tenantId, language }: { bytes: Uint8Array; tenantId: number; language: string }) => ({
    sections: captionSections(runToEnd(spokenCues(textOf(bytes))), { tenantId, language }),
  }),

  /** Parses a piece of a CSV file. */
  csv: readCsvPiece,
};

export type ParserName = keyof typeof PARSERS;
export type ParserInput<N extends ParserName> = Parameters<(typeof PARSERS)[N]>[0];
export type ParserOutput<N extends ParserName> = Awaited<ReturnType<(typeof PARSERS)[N]>>;
