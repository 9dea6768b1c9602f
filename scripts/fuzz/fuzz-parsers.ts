import { deflateSync } from "node:zlib";
import fc from "fast-check";
import { TooComplex } from "#lib/base";
import { PARSERS, type ParserInput, type ParserName } from "#platform/parsing/parsers.ts";
import { documentOf, type FuzzDocument } from "./documents.ts";

/** Processor time of one document, in ms. Documents are a few hundred kilobytes at most. */
const MAX_MS = 500;

const below = {
  carried: "~token/",
  folder: "1-1/",
  root: "/media/1/",
  hidden: ["hvc1", "hev1", "av01"],
  variant: null,
  audio: { changed: [], added: [] },
  isStereo: true,
  sides: { min: 360, max: 720 },
  isAscending: true,
  sheet: null,
  tracks: [
    {
      id: 1,
      list: "subtitles/1.m3u8",
      file: "subtitles/1.vtt",
      language: "en",
      label: "English",
      isDefault: true,
      role: "caption" as const,
    },
  ],
};
const bytesOf = ({ text }: FuzzDocument) => Buffer.from(text);
type Way<N extends ParserName> = {
  of: readonly FuzzDocument["extension"][];
  input(document: FuzzDocument): ParserInput<N>;
};

/** Which documents each parser gets. */
const WAYS: { [N in ParserName]: Way<N> } = {
  hls: { of: ["m3u8"], input: ({ text }) => ({ text, path: "folder/master.m3u8", stored: 10 }) },
  hlsSegments: { of: ["m3u8"], input: (document) => ({ bytes: bytesOf(document) }) },
  mpd: { of: ["mpd"], input: ({ text }) => ({ text, path: "folder/manifest.mpd", stored: 10 }) },
  storyboard: { of: ["vtt"], input: ({ text }) => ({ text }) },
  rebase: {
    of: ["m3u8", "mpd", "vtt"],
    input: (document) => ({
      what: ({ m3u8: "master", mpd: "mpd" } as const)[document.extension as "m3u8" | "mpd"] ?? "storyboard",
      bytes: bytesOf(document),
      below,
    }),
  },
  storyboardJson: {
    of: ["vtt"],
    input: (document) => ({
      bytes: bytesOf(document),
      root: "http://localhost/media/1/",
      folder: "1-1/",
      durationSeconds: 1,
      sheet: null,
    }),
  },
  clipMaster: { of: ["m3u8"], input: (document) => ({ bytes: bytesOf(document), path: "folder/master.m3u8" }) },
  clipPlaylist: {
    of: ["m3u8"],
    input: (document) => ({ bytes: bytesOf(document), path: "folder/low.m3u8", around: { start: 1, end: 9 } }),
  },
  clipMpd: {
    of: ["mpd"],
    input: (document) => ({
      bytes: bytesOf(document),
      path: "folder/manifest.mpd",
      range: { start: 1, end: 9 },
      shared: { startSeconds: 0, segments: [], objects: [] },
    }),
  },
  clipVtt: { of: ["vtt"], input: (document) => ({ bytes: bytesOf(document), startMs: 1000, endMs: 9000 }) },
  clipStoryboard: { of: ["vtt"], input: (document) => ({ bytes: bytesOf(document), startMs: 1000, endMs: 9000 }) },
  vtt: { of: ["vtt"], input: ({ text }) => ({ text }) },
  subtitleFile: {
    of: ["vtt", "srt", "ttml"],
    input: (document) => ({ filename: `a.${document.extension}`, bytes: bytesOf(document) }),
  },
  syncTexts: { of: ["vtt"], input: ({ text }) => ({ track: text, reference: text }) },
  csv: { of: ["csv"], input: (document) => ({ bytes: bytesOf(document), isFirst: true, isLast: true }) },
  payloads: { of: ["vtt"], input: ({ text }) => ({ text }) },
  transcript: { of: ["vtt"], input: ({ text }) => ({ text, asJson: null }) },
  spokenWords: { of: ["csv", "vtt"], input: ({ text }) => ({ bytes: Buffer.from(JSON.stringify([[text, 0, 1]])) }) },
  editedWords: {
    of: ["vtt"],
    input: ({ text }) => ({
      text,
      words: deflateSync(JSON.stringify(text.split(/\s+/).map((word, at) => [word.slice(0, 200), at, at + 1, 0.5]))),
    }),
  },
  wordsTranscript: {
    of: ["vtt"],
    input: ({ text }) => ({ words: deflateSync(JSON.stringify([[text, 0, 1]])), language: "en" }),
  },
  searchSections: { of: ["vtt"], input: (document) => ({ bytes: bytesOf(document), tenantId: 1, language: "en" }) },
};

export type ParserReport = { documents: number; slowestMs: number; failures: string[] };

/** Gives each parser its share of `runs` documents. The only permitted error is TooComplex, and none may take long. */
export function fuzzParsers({ runs, seed }: { runs: number; seed: number }): ParserReport {
  const report: ParserReport = { documents: 0, slowestMs: 0, failures: [] };
  const names = Object.keys(PARSERS) as ParserName[];
  for (const name of names) {
    const { of, input } = WAYS[name];
    const parse = PARSERS[name] as (given: unknown) => unknown;
    const property = fc.property(fc.oneof(...of.map(documentOf)), (document) => {
      const given = input(document);
      const from = process.threadCpuUsage();
      try {
        parse(given);
      } catch (error) {
        if (!(error instanceof TooComplex)) throw error;
      }
      const { user, system } = process.threadCpuUsage(from);
      const ms = (user + system) / 1000;
      report.documents++;
      report.slowestMs = Math.max(report.slowestMs, ms);
      if (ms > MAX_MS) throw new Error(`took ${ms} ms`);
    });
    const outcome = fc.check(property, { numRuns: Math.ceil(runs / names.length), seed });
    if (outcome.failed) report.failures.push(`${name}: ${fc.defaultReportMessage(outcome)?.slice(0, 2000)}`);
  }
  return report;
}
