import type { TimeRange } from "./range.ts";

/*
 * A clip of ten seconds needs a thousandth of the manifests of a three-hour video. Manifests in the form that
 * `mediaPlaylist` and `staticMpd` write are reduced to the part around the clip before they are parsed: linear in time,
 * without a parser thread. The times and numbers of the segments that remain are the same. Any other form is not changed.
 */

/** Beyond it a parser thread reads the whole text. */
const MAX_BYTES = 2 ** 20;
/** Segments that are kept on each side of the range, because those of audio have other boundaries. */
const MORE = 3;
const HEADER =
  /^#(EXTM3U|EXT-X-(VERSION:\d+|TARGETDURATION:\d+|MEDIA-SEQUENCE:0|PLAYLIST-TYPE:VOD|I-FRAMES-ONLY|INDEPENDENT-SEGMENTS|MAP:URI="[^"]{1,900}"))$/;
const INFO = "#EXTINF:";
const SPAN = "#EXT-X-BYTERANGE:";
const END = "#EXT-X-ENDLIST";
const SECONDS = /^\d{1,9}\.\d{1,20}$/;

/** A segment: when it begins, how long it is, and the part of the text with its lines after `#EXTINF`. */
type Entry = { start: number; seconds: number; from: number; to: number };

/**
 * A media playlist, in which one segment takes the place of those before the range. Of the thousands of lines of a long
 * video only those that are kept become strings.
 */
export function reducePlaylist(bytes: Uint8Array, range: TimeRange): Uint8Array {
  if (bytes.byteLength > MAX_BYTES) return bytes;
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const first = text.indexOf(`\n${INFO}`) + 1;
  const header = text.slice(0, Math.max(0, first - 1)).split("\n");
  if (first === 0 || !header.every((line) => HEADER.test(line))) return bytes;
  const entries = entriesOf(text, first);
  if (!entries) return bytes;
  const from = Math.max(1, entries.findIndex((one) => one.start + one.seconds > range.start) - MORE);
  const after = entries.findIndex((one) => one.start >= range.end);
  const to = after < 0 ? entries.length : after + MORE;
  const before = entries[0];
  const next = entries[from];
  if (!before || !next) return bytes;
  const written = [{ ...before, seconds: next.start }, ...entries.slice(from, to)].flatMap((one) => [
    `${INFO}${digits(one.seconds)},`,
    text.slice(one.from, one.to),
  ]);
  return Buffer.from([...header, ...written, END, ""].join("\n"));
}

/** The segments from position `at` to the end of a playlist; null when it has another form. */
function entriesOf(text: string, at: number): Entry[] | null {
  const entries: Entry[] = [];
  let start = 0;
  let line = at;
  while (!(text.startsWith(END, line) && (line + END.length === text.length || text[line + END.length] === "\n"))) {
    const infoEnd = text.indexOf("\n", line);
    if (infoEnd < 0 || !text.startsWith(INFO, line) || text[infoEnd - 1] !== ",") return null;
    const digits = text.slice(line + INFO.length, infoEnd - 1);
    const from = infoEnd + 1;
    const uri = text.startsWith(SPAN, from) ? text.indexOf("\n", from) + 1 : from;
    const to = uri === 0 ? -1 : text.indexOf("\n", uri);
    if (!SECONDS.test(digits) || to <= uri || text[uri] === "#") return null;
    const seconds = Number(digits);
    entries.push({ start, seconds, from, to });
    start += seconds;
    line = to + 1;
  }
  return entries;
}

/** Exactly the number, without an exponent. */
const digits = (seconds: number) => (seconds >= 1e-6 ? String(seconds) : seconds.toFixed(20));

const TIMELINE = /^ *<SegmentTimeline>$/;
const TEMPLATE = /^ *<SegmentTemplate timescale="(\d{1,10})"(?: [a-zA-Z]{1,40}="[^"]{0,900}"){0,10}>$/;
const OFFSET = / presentationTimeOffset="(\d{1,15})"/;
const S = /^ *<S t="(\d{1,15})" d="(\d{1,15})"(?: r="(\d{1,15})")?\/>$/;

type Run = { start: number; duration: number; count: number };

/** A DASH manifest, in each of whose timelines one run takes the place of those before the range. */
export function reduceMpd(bytes: Uint8Array, range: TimeRange): Uint8Array {
  if (bytes.byteLength > MAX_BYTES) return bytes;
  const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8").split("\n");
  const written: string[] = [];
  for (let at = 0; at < lines.length; at++) {
    written.push(lines[at] as string);
    if (!TIMELINE.test(lines[at] as string)) continue;
    const template = lines[at - 1] ?? "";
    const timescale = Number(TEMPLATE.exec(template)?.[1] ?? 0);
    if (!timescale) return bytes;
    const runs: Run[] = [];
    for (let match = S.exec(lines[at + 1] ?? ""); match; match = S.exec(lines[at + 1] ?? "")) {
      runs.push({ start: Number(match[1]), duration: Number(match[2]), count: Number(match[3] ?? 0) + 1 });
      at++;
    }
    if (!/^ *<\/SegmentTimeline>$/.test(lines[at + 1] ?? "")) return bytes;
    const offset = Number(OFFSET.exec(template)?.[1] ?? 0);
    for (const run of reduceRuns(runs, range.start * timescale + offset, range.end * timescale + offset))
      written.push(`<S t="${run.start}" d="${run.duration}"${run.count > 1 ? ` r="${run.count - 1}"` : ""}/>`);
  }
  return Buffer.from(written.join("\n"));
}

/** The segments before the range become one run of as many, which ends where the first kept one begins. */
function reduceRuns(runs: readonly Run[], start: number, end: number): Run[] {
  const endOf = (run: Run) => run.start + run.count * run.duration;
  const from = Math.max(0, runs.findIndex((run) => endOf(run) > start) - MORE);
  const after = runs.findIndex((run) => run.start >= end);
  const kept = runs.slice(from, after < 0 ? runs.length : after + MORE);
  const first = runs[0];
  const next = kept[0];
  const count = runs.slice(0, from).reduce((sum, run) => sum + run.count, 0);
  if (!first || !next || count === 0) return kept;
  const duration = Math.floor((next.start - first.start) / count);
  return duration > 0 ? [{ start: first.start, duration, count }, ...kept] : [...runs];
}
