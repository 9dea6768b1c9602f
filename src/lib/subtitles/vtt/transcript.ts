import type { Sliced } from "#lib/base/web";
import { plainText } from "../cue-text/plain-text.ts";
import { parsing } from "./parse.ts";

/** A cue as text without markup; times in ms. */
export type SpokenCue = { text: string; start_ms: number; end_ms: number };

const CUES_PER_SLICE = 500;
/** A pause of this length begins a paragraph. */
const PARAGRAPH_MS = 2000;

/** The cues of a WebVTT text in the order in which they begin, without empty ones. Throws TooComplex. */
export function* spokenCues(source: string): Sliced<SpokenCue[]> {
  const { cues } = yield* parsing(source);
  const spoken: SpokenCue[] = [];
  for (const [index, { text, startMs, endMs }] of cues.entries()) {
    if (index % CUES_PER_SLICE === 0) yield;
    const plain = plainText(text);
    if (plain !== "") spoken.push({ text: plain, start_ms: startMs, end_ms: endMs });
  }
  return spoken.sort((a, b) => a.start_ms - b.start_ms);
}

/** What is said as text: cues follow one another, a pause begins a paragraph. Empty without cues. */
export function asParagraphs(cues: readonly SpokenCue[]): string {
  const parts: string[] = [];
  let endMs = 0;
  for (const cue of cues) {
    if (parts.length > 0) parts.push(cue.start_ms - endMs >= PARAGRAPH_MS ? "\n\n" : " ");
    parts.push(cue.text);
    endMs = Math.max(endMs, cue.end_ms);
  }
  return parts.length === 0 ? "" : `${parts.join("")}\n`;
}
