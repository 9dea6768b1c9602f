import { asParagraphs, formatTime, type SpokenCue } from "#lib/subtitles/web";
import { clock } from "../clock.ts";

/** A transcript as files of other programs; lines are text without markup. */

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export const FORMATS = {
  TXT: { type: "text/plain", write: asParagraphs },
  VTT: {
    type: "text/vtt",
    write: (lines: readonly SpokenCue[]) =>
      `WEBVTT\n${lines.map(({ start_ms, end_ms, text }) => `\n${formatTime(start_ms)} --> ${formatTime(end_ms)}\n${escaped(text)}\n`).join("")}`,
  },
  SRT: {
    type: "application/x-subrip",
    write: (lines: readonly SpokenCue[]) =>
      lines
        .map(
          ({ start_ms, end_ms, text }, index) => `${index + 1}\n${srtTime(start_ms)} --> ${srtTime(end_ms)}\n${text}\n`,
        )
        .join("\n"),
  },
} satisfies Record<string, { type: string; write: (lines: readonly SpokenCue[]) => string }>;

const srtTime = (ms: number) => formatTime(ms).replace(".", ",");

/** `0:08 text`, a line for each. */
export const withTimes = (lines: readonly SpokenCue[]): string =>
  lines.map(({ start_ms, text }) => `${clock(start_ms / 1000)} ${text}\n`).join("");
