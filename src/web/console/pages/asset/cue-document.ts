import { runToEnd } from "#lib/base/web";
import { type Cue, type Fault, formatTime, parsing, retimed } from "#lib/subtitles/web";

export type Timing = { startMs: number; endMs: number };
/** A WebVTT text and its cues. An edit replaces only what it changes: comments, styles and settings stay as they are. */
export type CueDocument = { source: string; cues: Cue[]; faults: Fault[] };

export function openCues(source: string): CueDocument {
  try {
    return { source, ...runToEnd(parsing(source)) };
  } catch (error) {
    // A text with too many cues: the API refuses it too.
    return { source, cues: [], faults: [{ line: 1, message: (error as Error).message }] };
  }
}

type Piece = { from: number; to: number; text: string };
/** `pieces` in the order of the text. */
export function replaced(source: string, pieces: readonly Piece[]): CueDocument {
  let text = "";
  let done = 0;
  for (const piece of pieces) {
    text += source.slice(done, piece.from) + piece.text;
    done = piece.to;
  }
  return openCues(text + source.slice(done));
}

/** A blank line would end the cue, and an arrow begin one. */
export const payload = (text: string) =>
  text
    .replaceAll("-->", "--&gt;")
    .split(/\r\n|\n|\r/)
    .filter((line) => line.trim() !== "")
    .join("\n");

export const withText = ({ source, cues }: CueDocument, index: number, text: string): CueDocument =>
  replaced(source, [{ ...(cues[index] as Cue).textAt, text: payload(text) }]);

export const withTiming = ({ source, cues }: CueDocument, index: number, timing: Timing): CueDocument => {
  const { startAt, endAt } = cues[index] as Cue;
  return replaced(source, [
    { ...startAt, text: formatTime(timing.startMs) },
    { ...endAt, text: formatTime(timing.endMs) },
  ]);
};

/** Where the block of a cue begins: its id is in the line before the times. */
export function beginOf(source: string, { id, startAt }: Cue): number {
  const line = Math.max(source.lastIndexOf("\n", startAt.from - 1), source.lastIndexOf("\r", startAt.from - 1)) + 1;
  return id === null ? line : source.lastIndexOf(id, line - 1);
}

export function withoutCue({ source, cues }: CueDocument, index: number): CueDocument {
  const cue = cues[index] as Cue;
  return replaced(source, [{ from: beginOf(source, cue), to: cue.textAt.to, text: "" }]);
}

/** Adds a cue after those that start before it. Returns its index too. */
export function withCue(
  { source, cues }: CueDocument,
  timing: Timing,
  text: string,
): { document: CueDocument; index: number } {
  const block = `${formatTime(timing.startMs)} --> ${formatTime(timing.endMs)}\n${payload(text)}`;
  const before = cues.findLastIndex(({ startMs }) => startMs <= timing.startMs);
  const [first] = cues;
  const previous = cues[before];
  const piece = previous
    ? { from: previous.textAt.to, to: previous.textAt.to, text: `\n\n${block}` }
    : first
      ? { from: beginOf(source, first), to: beginOf(source, first), text: `${block}\n\n` }
      : { from: source.length, to: source.length, text: `\n\n${block}\n` };
  return { document: replaced(source, [piece]), index: before + 1 };
}

/** Every time multiplied by `factor`, then moved by `shiftMs`; none before zero. */
export function withAllTimes({ source, cues }: CueDocument, shiftMs: number, factor: number): CueDocument {
  const moved = (ms: number) => Math.max(0, Math.round(ms * factor + shiftMs));
  const timings = cues.map(({ startMs, endMs }) => {
    const start = moved(startMs);
    return { startMs: start, endMs: Math.max(start + 1, moved(endMs)) };
  });
  return openCues(runToEnd(retimed(source, cues, timings)));
}
