import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { SpokenCue } from "#lib/subtitles";
import { folded } from "./fold.ts";
import { termsOf } from "./terms.ts";

export const MATCH_KINDS = ["title", "description", "caption", "chapter"] as const;
export type MatchKind = (typeof MATCH_KINDS)[number];

/** A line of text that can be found; `startMs` for captions and chapters. */
export type Line = { kind: MatchKind; text: string; startMs: number | null };

/** A row of the index: its terms, and its lines, compressed. */
export type Section = { terms: string; data: Uint8Array };

/** About an hour of speech. Its terms are written in some milliseconds. */
const SECTION_BYTES = 32 * 1024;
/** Longer lines are several with the same time. */
const LINE_CHARACTERS = 2000;
/** A bound for what was written by another version, or damaged. */
const MAX_DATA_BYTES = 2 * 2 ** 20;

const LETTERS: Record<MatchKind, string> = { title: "t", description: "d", caption: "c", chapter: "h" };
const KINDS = Object.fromEntries(Object.entries(LETTERS).map(([kind, letter]) => [letter, kind as MatchKind]));

const oneLine = (text: string) => text.replace(/\s+/g, " ").trim();

/** Pieces of a long text, cut at a space where there is one. */
function* pieces(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const piece = text.slice(from, from + LINE_CHARACTERS);
    // In the piece alone: a search in the whole text would read all of it for each piece.
    const space = from + LINE_CHARACTERS < text.length ? piece.lastIndexOf(" ") : -1;
    const to = from + (space > 0 ? space : piece.length);
    yield text.slice(from, to);
    from = to;
  }
}

function* linesOf(line: Line): Generator<Line> {
  for (const text of pieces(oneLine(line.text))) yield { ...line, text };
}

const written = ({ kind, text, startMs }: Line) =>
  `${LETTERS[kind]}${startMs === null ? "" : startMs.toString(36)} ${text}`;

/** The sections of a language's captions. */
export function captionSections(
  cues: readonly SpokenCue[],
  { tenantId, language }: { tenantId: number; language: string },
): Section[] {
  const sections: Section[] = [];
  let lines: Line[] = [];
  let bytes = 0;
  const end = () => {
    if (lines.length > 0) sections.push(sectionOf(lines, { tenantId, language }));
    lines = [];
    bytes = 0;
  };
  for (const { text, start_ms } of cues)
    for (const line of linesOf({ kind: "caption", text, startMs: start_ms })) {
      lines.push(line);
      bytes += Buffer.byteLength(line.text);
      if (bytes >= SECTION_BYTES) end();
    }
  end();
  return sections;
}

/** The section of an asset's own texts; what is longer than one section is left out. */
export function assetSection(lines: readonly Line[], tenantId: number): Section {
  const kept: Line[] = [];
  let bytes = 0;
  for (const each of lines)
    for (const line of linesOf(each)) {
      bytes += Buffer.byteLength(line.text);
      if (bytes <= SECTION_BYTES) kept.push(line);
    }
  return sectionOf(kept, { tenantId, language: null });
}

function sectionOf(lines: readonly Line[], { tenantId, language }: { tenantId: number; language: string | null }) {
  const text = (isTitle: boolean) =>
    folded(
      lines
        .filter(({ kind }) => (kind === "title") === isTitle)
        .map((line) => line.text)
        .join("\n"),
    );
  const terms = termsOf({ tenantId, language, title: text(true), others: [text(false)] });
  return { terms, data: zstdCompressSync(lines.map(written).join("\n")) };
}

/** The lines of a section, as `lineOf` reads them. Throws when the data are damaged. */
export const readText = (data: Uint8Array): string =>
  zstdDecompressSync(data, { maxOutputLength: MAX_DATA_BYTES }).toString("utf8");

/** A line of `readText`: its kind, its time and a space precede the text. */
export function lineOf(written: string): Line {
  const space = written.indexOf(" ");
  const time = written.slice(1, space);
  return {
    kind: KINDS[written.charAt(0)] ?? "caption",
    startMs: time === "" ? null : Number.parseInt(time, 36),
    text: written.slice(space + 1),
  };
}
