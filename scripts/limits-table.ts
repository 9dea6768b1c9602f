import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DOCUMENT_LIMITS } from "../src/lib/document-limits.ts";
import { paths } from "./build/paths.ts";

/** `node scripts/limits-table.ts` writes the table of limits into this document, from the limits themselves. */
export const document = join(paths.root, "docs/api.md");
const BEGIN = "<!-- limits: written by scripts/limits-table.ts -->\n";
const END = "<!-- end of limits -->\n";

const bytes = (value: number) => (value % 2 ** 20 === 0 ? `${value / 2 ** 20} MiB` : `${value} bytes`);
const count = (value: number) => value.toLocaleString("en-US");

/** What each limit applies to. */
const ABOUT: Record<keyof typeof DOCUMENT_LIMITS, [what: string, value: (value: number) => string]> = {
  parseMs: ["Time to parse one document, without the time that it waits", (value) => `${value / 1000} s`],
  heapMebibytes: ["Memory to parse one document", (value) => `${value} MiB`],
  documentBytes: ["A playlist, manifest, storyboard or subtitle file of an ingest batch", bytes],
  servedBytes: ["A manifest or storyboard that is rewritten when it is served, or read for a picture", bytes],
  batchDocumentBytes: ["Documents that one batch manifest leads to, together", bytes],
  lineCharacters: ["A line of a playlist or storyboard, in characters", count],
  playlistReferences: ["References of a playlist", count],
  playlistVariants: ["Variants of a master playlist", count],
  subtitleGroups: ["Groups of subtitles in a master playlist to which tracks are added", count],
  xmlDepth: ["Elements of an MPD inside each other", count],
  xmlElements: ["Elements of an MPD", count],
  xmlAttributes: ["Attributes of an element", count],
  xmlAttributeCharacters: ["A name or the value of an attribute, in characters", count],
  mpdSegments: ["Segments of an MPD, over all representations", count],
  mpdPathCharacters: ["Templates and paths of these segments, in characters", count],
  storyboardTiles: ["Tiles of a storyboard", count],
  storyboardPictures: ["Pictures of a storyboard", count],
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

/** The document as it should be. */
export function currentDocument(): string {
  const text = readFileSync(document, "utf8");
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from === -1 || to < from) throw new Error(`${document} has no marks around its limits`);
  return `${text.slice(0, from + BEGIN.length)}\n| Limit | Value |\n|---|---|\n${rows.join("")}\n${text.slice(to)}`;
}

if (import.meta.main) writeFileSync(document, currentDocument());
