import type { Sliced } from "#lib/base";
import { type Cue, parsing } from "./parse.ts";
import { formatTime, readTime } from "./time.ts";
import { writeCue } from "./write.ts";

const PER_STEP = 100;
/** WebVTT, 4.2.2: a timestamp tag, which delays the text that follows it. */
const INNER = /<((?:\d{2,}:)?\d{2}:\d{2}\.\d{3})>/g;

/** A text, and the number of its cues. */
type Clip = { text: string; cues: number };

/**
 * The cues of a WebVTT text within a range of milliseconds, whose start becomes 0: cues outside are left out, those
 * across an edge end there. Styles and regions are kept, comments between cues are not. Throws TooComplex.
 */
export function* clippedVtt(source: string, { startMs, endMs }: { startMs: number; endMs: number }): Sliced<Clip> {
  const { cues } = yield* parsing(source);
  const within = (ms: number) => Math.max(0, Math.min(ms, endMs) - startMs);
  const blocks: string[] = [headOf(source, cues[0])];
  for (const [index, cue] of cues.entries()) {
    if (index % PER_STEP === 0) yield;
    const times = { startMs: within(cue.startMs), endMs: within(cue.endMs) };
    if (times.startMs >= times.endMs) continue;
    const inner = (tag: string, time: string) => {
      const ms = readTime(time);
      return ms === null ? tag : `<${formatTime(within(ms))}>`;
    };
    const text = cue.text.includes("<") ? cue.text.replace(INNER, inner) : cue.text;
    blocks.push(writeCue({ id: cue.id, settings: cue.settings, ...times, text }));
  }
  return { text: `${blocks.join("\n\n")}\n`, cues: blocks.length - 1 };
}

/** The header, styles and regions, without the id of the first cue. */
function headOf(source: string, first: Cue | undefined): string {
  if (!first) return source.trimEnd() || "WEBVTT";
  const head = source.slice(0, first.startAt.from).replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  const end = first.id === null ? head.length : head.lastIndexOf("\n", head.length - 2) + 1;
  return head.slice(0, end).trimEnd();
}
