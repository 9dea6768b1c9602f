import { DOCUMENT_LIMITS } from "#lib/base";

const bytes = (value: number) => (value % 2 ** 20 === 0 ? `${value / 2 ** 20} MiB` : `${value} bytes`);
const count = (value: number) => value.toLocaleString("en-US");

/** What each limit applies to. */
const ABOUT: Record<keyof typeof DOCUMENT_LIMITS, [what: string, value: (value: number) => string]> = {
  parseMs: ["Time to parse one document, without the time in the queue", (value) => `${value / 1000} s`],
  heapMebibytes: ["Memory to parse one document", (value) => `${value} MiB`],
  documentBytes: ["A playlist, manifest, storyboard or subtitle file of a batch upload", bytes],
  servedBytes: ["A manifest or storyboard that is rewritten when it is served, or read to generate an image", bytes],
  batchDocumentBytes: ["Documents that one batch manifest refers to, in total", bytes],
  lineCharacters: ["A line of a playlist or storyboard, in characters", count],
  playlistReferences: ["References of a playlist", count],
  playlistVariants: ["Variants of a master playlist", count],
  subtitleGroups: ["Groups of subtitles in a master playlist to which tracks are added", count],
  xmlDepth: ["Nesting depth of an MPD", count],
  xmlElements: ["Elements of an MPD", count],
  xmlAttributes: ["Attributes of an element", count],
  xmlAttributeCharacters: ["A name or the value of an attribute, in characters", count],
  mpdSegments: ["Segments of an MPD, over all representations", count],
  mpdPathCharacters: ["Templates and paths of these segments, in characters", count],
  storyboardTiles: ["Tiles of a storyboard", count],
  storyboardImages: ["Images of a storyboard", count],
  outputCharacters: ["A document after it is rewritten, in characters", count],
  csvBytes: ["A CSV file; a larger one is 413", bytes],
  csvRows: ["Rows of a CSV file", count],
  csvColumns: ["Columns of a row", count],
  csvRowBytes: ["A row of a CSV file", bytes],
  cues: ["Cues of a WebVTT or SubRip file", count],
  faults: ["Faults that are reported for one document; the parser stops there", count],
};

const rows = Object.entries(ABOUT).map(
  ([name, [what, shown]]) => `| ${what} | ${shown(DOCUMENT_LIMITS[name as keyof typeof DOCUMENT_LIMITS])} |\n`,
);

export const limitsTable = (): string => `| Limit | Value |\n|---|---|\n${rows.join("")}`;
