import { type Cue, formatTime } from "#lib/subtitles/web";
import { beginOf, type CueDocument, payload, replaced } from "./cue-document.ts";

/** A word as recognized, in ms; `confidence` is 0 to 1. */
export type SpokenWord = { text: string; start_ms: number; end_ms: number; confidence?: number | undefined };

const TAGS = /<[^<>]*>/g;
const NAME = /^<(\/?)([a-z]{1,20})/i;

/** The text before and after `at`, with the tags that are open there closed and opened again; null for an empty half. */
function halves(text: string, at: number): [string, string] | null {
  const open: { name: string; tag: string }[] = [];
  let place = at;
  for (const { 0: tag, index } of text.matchAll(TAGS)) {
    const [, slash, name] = NAME.exec(tag) ?? [];
    if (index >= place) break;
    // A cursor within a tag is after it.
    place = Math.max(place, index + tag.length);
    if (name === undefined) continue;
    if (slash === "") open.push({ name, tag });
    else if (open.at(-1)?.name === name) open.pop();
  }
  let before = text.slice(0, place).trimEnd();
  let closed = open.length;
  // A tag that opens right before the cursor belongs to the second half.
  for (; closed > 0 && before.endsWith(open[closed - 1]?.tag ?? "\0"); closed--)
    before = before.slice(0, -(open[closed - 1]?.tag.length ?? 0)).trimEnd();
  const after = text.slice(place).trimStart();
  if (!plain(before).trim() || !plain(after).trim()) return null;
  const closing = open
    .slice(0, closed)
    .map(({ name }) => `</${name}>`)
    .reverse();
  return [before + closing.join(""), open.map(({ tag }) => tag).join("") + after];
}

const plain = (text: string) => text.replaceAll(TAGS, "");
const wordsIn = (text: string) => plain(text).split(/\s+/).filter(Boolean).length;

/** When the second half of a cue begins: at its first word where the times of words are known, else by its letters. */
function splitMs(cue: Cue, [before, after]: [string, string], words: readonly SpokenWord[]): number {
  const { startMs, endMs } = cue;
  const own = words.filter(
    ({ start_ms, end_ms }) => (start_ms + end_ms) / 2 >= startMs && (start_ms + end_ms) / 2 < endMs,
  );
  const count = wordsIn(before);
  const letters = plain(before).length / (plain(before).length + plain(after).length);
  const ms =
    own.length === count + wordsIn(after) ? (own[count]?.start_ms ?? startMs) : startMs + (endMs - startMs) * letters;
  return Math.round(Math.min(endMs - 1, Math.max(startMs + 1, ms)));
}

/** Splits a cue at a position of its text, in UTF-16 code units; null where one half would be empty. */
export function withSplit(
  { source, cues }: CueDocument,
  index: number,
  { at, words }: { at: number; words: readonly SpokenWord[] },
): CueDocument | null {
  const cue = cues[index] as Cue;
  const parts = halves(cue.text, at);
  if (!parts || cue.endMs - cue.startMs < 2) return null;
  const ms = formatTime(splitMs(cue, parts, words));
  const settings = cue.settings && ` ${cue.settings}`;
  const second = `${ms} --> ${formatTime(cue.endMs)}${settings}\n${payload(parts[1])}`;
  return replaced(source, [
    { ...cue.endAt, text: ms },
    { ...cue.textAt, text: `${payload(parts[0])}\n\n${second}` },
  ]);
}

/** Merges a cue with the next one; the document itself for the last cue. */
export function withMerged(document: CueDocument, index: number): CueDocument {
  const { source, cues } = document;
  const cue = cues[index] as Cue;
  const next = cues[index + 1];
  if (!next) return document;
  return replaced(source, [
    { ...cue.endAt, text: formatTime(Math.max(cue.endMs, next.endMs)) },
    { ...cue.textAt, text: payload(`${cue.text}\n${next.text}`) },
    { from: beginOf(source, next), to: next.textAt.to, text: "" },
  ]);
}

export type Search = { text: string; isExact: boolean };
/** `from` and `to` are positions in the text of the cue. */
export type Match = { cue: number; from: number; to: number };

const patternOf = ({ text, isExact }: Search) =>
  new RegExp(text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"), isExact ? "gu" : "giu");

/** Where the text is, in the order of the cues. */
export function matchesOf({ cues }: CueDocument, search: Search): Match[] {
  if (search.text === "") return [];
  const pattern = patternOf(search);
  return cues.flatMap(({ text }, cue) =>
    [...text.matchAll(pattern)].map(({ 0: found, index }) => ({ cue, from: index, to: index + found.length })),
  );
}

/** Replaces matches, which are in the order of the cues. */
export function withReplaced({ source, cues }: CueDocument, matches: readonly Match[], text: string): CueDocument {
  const pieces = [...Map.groupBy(matches, ({ cue }) => cue)].map(([index, found]) => {
    const { text: before, textAt } = cues[index] as Cue;
    let after = "";
    let done = 0;
    for (const { from, to } of found) {
      after += before.slice(done, from) + text;
      done = to;
    }
    return { ...textAt, text: payload(after + before.slice(done)) };
  });
  return replaced(source, pieces);
}

/**
 * The index of the match at which replacing continues, among those of the text after `match` was replaced: the first one
 * behind the replacement, else the first of all.
 */
export function matchBehind(matches: readonly Match[], match: Match, texts: { before: string; after: string }): number {
  // What is behind a match stays as it is; a replacement may be written with other characters.
  const behind = Math.max(match.from, texts.after.length - (texts.before.length - match.to));
  const next = matches.findIndex(({ cue, from }) => cue > match.cue || (cue === match.cue && from >= behind));
  return Math.max(0, next);
}

/** A word of lower confidence is shown as uncertain. */
const UNCERTAIN = 0.6;
const MAX_SHOWN = 8;

/** The uncertain words that each cue still contains, by its index. */
export function uncertainOf({ cues }: CueDocument, words: readonly SpokenWord[]): Map<number, string[]> {
  const found = new Map<number, string[]>();
  const uncertain = words.filter(({ confidence }) => confidence !== undefined && confidence < UNCERTAIN);
  if (uncertain.length === 0) return found;
  const ordered = cues.map((cue, index) => ({ cue, index })).sort((a, b) => a.cue.startMs - b.cue.startMs);
  let at = 0;
  for (const { text, start_ms, end_ms } of uncertain) {
    const middle = (start_ms + end_ms) / 2;
    while (at < ordered.length && (ordered[at] as (typeof ordered)[number]).cue.endMs <= middle) at++;
    const entry = ordered[at];
    if (!entry || entry.cue.startMs > middle || !plain(entry.cue.text).toLowerCase().includes(text.toLowerCase()))
      continue;
    const own = found.get(entry.index) ?? [];
    if (own.length < MAX_SHOWN && !own.includes(text)) own.push(text);
    found.set(entry.index, own);
  }
  return found;
}
