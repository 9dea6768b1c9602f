import { DOCUMENT_LIMITS, requireAtMost } from "#lib/base";
import { linesOf } from "./lines-of.ts";

/** A cue of a storyboard: from `startSeconds` on, a region of the image at `uri`. Pixels. */
export type StoryboardTile = { startSeconds: number; uri: string; x: number; y: number; width: number; height: number };

const PART = "#xywh=";
const AREA = /^(?:pixel:)?(\d{1,6}),(\d{1,6}),(\d{1,6}),(\d{1,6})$/;
const START = /^(?:(\d{2,6}):)?([0-5]\d):([0-5]\d)\.(\d{3})[ \t]/;

/** Index of `#xywh=` in a line that names a region of an image, else -1. */
const uriEnd = (line: string): number => {
  if (line.length <= PART.length) return -1;
  const at = line.lastIndexOf(PART);
  const names = at > 0 && at + PART.length < line.length && !/\s/.test(line);
  return names ? at : -1;
};

/**
 * The images that a WebVTT storyboard refers to, as in `sheet.jpg#xywh=0,0,160,90` (Media Fragments URI 1.0, 4.2.2),
 * each once; null when `text` is not WebVTT. Linear in time. Throws TooComplex.
 * @example
 * storyboardImages("WEBVTT\n\n00:00.000 --> 00:02.000\nsheet.jpg#xywh=0,0,160,90") // => ["sheet.jpg"]
 */
export function storyboardImages(text: string): string[] | null {
  if (!/^\ufeff?WEBVTT(?:[ \t\r\n]|$)/.test(text)) return null;
  const uris = new Set<string>();
  let tiles = 0;
  for (const line of linesOf(text)) {
    const end = uriEnd(line);
    if (end === -1) continue;
    requireAtMost(++tiles, DOCUMENT_LIMITS.storyboardTiles, "tiles");
    uris.add(line.slice(0, end));
    requireAtMost(uris.size, DOCUMENT_LIMITS.storyboardImages, "images");
  }
  return [...uris];
}

/** The tiles of a WebVTT storyboard in order; malformed ones are left out. Linear in time. Throws TooComplex. */
export function storyboardTiles(text: string): StoryboardTile[] {
  const tiles: StoryboardTile[] = [];
  let before = "";
  for (const line of linesOf(text)) {
    const end = uriEnd(line);
    const start = end > 0 && before.includes("-->") ? START.exec(before) : null;
    const area = start && AREA.exec(line.slice(end + PART.length));
    if (area) {
      const [, hours = "0", minutes, seconds, ms] = start;
      const [x = 0, y = 0, width = 0, height = 0] = area.slice(1).map(Number);
      const startSeconds = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(ms) / 1000;
      requireAtMost(tiles.length + 1, DOCUMENT_LIMITS.storyboardTiles, "tiles");
      tiles.push({ startSeconds, uri: line.slice(0, end), x, y, width, height });
    }
    before = line;
  }
  return tiles;
}

/** Replaces each line that names a region of an image. Throws TooComplex. */
export function mapStoryboard(text: string, map: (line: string) => string): string {
  const lines: string[] = [];
  let tiles = 0;
  let characters = 0;
  for (const line of linesOf(text)) {
    const isTile = uriEnd(line) !== -1;
    if (isTile) requireAtMost(++tiles, DOCUMENT_LIMITS.storyboardTiles, "tiles");
    const written = isTile ? map(line) : line;
    characters += written.length + 1;
    requireAtMost(characters, DOCUMENT_LIMITS.outputCharacters, "characters after it is rewritten");
    lines.push(written);
  }
  return lines.join("\n");
}
