import { pacer, runInSlices } from "#lib/base";
import { type ByteRange, joinRanges } from "#lib/isobmff";
import { readPacket, readTtmlSample, TrackText, type TtmlSample } from "#lib/subtitles";
import type { Warning } from "#model/warnings.ts";
import { MAX_TEXT_TRACKS } from "#protocol/text-tracks.ts";
import type { SourceIndex } from "../parallel/source-index.ts";
import { openMatroskaTexts } from "./matroska-texts.ts";
import { openMp4Texts } from "./mp4-texts.ts";
import type { TextPacket, TextSource, TextTrack } from "./text-track.ts";

/** One without an end is shown until the next one, but not longer. */
const MAX_OPEN_MS = 10_000;
/** Documents of TTML that are read of all tracks: samples may be the same bytes many times. */
const MAX_DOCUMENT_BYTES = 256 * 2 ** 20;
/** Closer ranges are one request. */
const GAP_BYTES = 64 * 1024;

export type ReadTrack = TextTrack & { vtt: string; skippedCues: number };

type ReadOptions = {
  /** When the file begins, on its own timeline. */
  startSeconds: number;
  /** The end of what plays; null where it is not known. */
  durationSeconds: number | null;
  /** For a source of which only parts are there; `need` makes bytes of it available. */
  index?: SourceIndex | null;
  need?: (ranges: readonly ByteRange[]) => Promise<void>;
  signal: AbortSignal;
  onMove: () => void;
};

/**
 * The text tracks of a source that have cues, with the times of the asset, and a warning for each that is left out. Sources in
 * other containers have none. Takes time linear in the size of the file, and memory within the limits of subtitles. Throws the
 * errors of the file, and those of `need`.
 */
export async function readTextTracks(
  path: string,
  options: ReadOptions,
): Promise<{ tracks: ReadTrack[]; warnings: Warning[] }> {
  await using source = await openTexts(path, options);
  if (!source || source.tracks.length === 0) return { tracks: [], warnings: [] };
  const warnings: Warning[] = [];
  const leaveOut = (track: TextTrack, reason: string) => warnings.push(leftOut(track, reason));
  const readable = source.tracks.filter((track) => {
    if (track.format === null) leaveOut(track, "cannot be read");
    return track.format !== null;
  });
  for (const track of readable.slice(MAX_TEXT_TRACKS))
    leaveOut(track, `is more than the ${MAX_TEXT_TRACKS} that an asset has`);
  const chosen = readable.slice(0, MAX_TEXT_TRACKS);
  const { texts, languages } = await readTexts(source, chosen, options);
  const tracks = chosen.flatMap((track): ReadTrack[] => {
    const text = texts.get(track.number);
    if (text?.isOver) leaveOut(track, "has more text or cues than a subtitle may have");
    if (!text || text.isOver) return [];
    const { vtt, skipped } = text.end();
    if (vtt === null && skipped > 0) leaveOut(track, "has no cue that can be read");
    const language = isStated(track.language) ? track.language : (languages.get(track.number) ?? track.language);
    return vtt === null ? [] : [{ ...track, language, vtt, skippedCues: skipped }];
  });
  return { tracks, warnings };
}

/** A warning for each text track of a source of which none can be read, for a reason that completes the sentence. */
export async function textTracksLeftOut(path: string, reason: string): Promise<Warning[]> {
  await using source = await openTexts(path, {});
  return (source?.tracks ?? []).map((track) => leftOut(track, reason));
}

async function openTexts(
  path: string,
  { index, need }: Pick<ReadOptions, "index" | "need">,
): Promise<TextSource | null> {
  const matroska = index ? null : await openMatroskaTexts(path);
  if (matroska) return matroska;
  const mp4 = await openMp4Texts(path, { index });
  if (!mp4 || !index || !need) return mp4;
  const ranges = mp4.samples.map(({ offset, size }): ByteRange => [offset, size]);
  await need(joinRanges(ranges, GAP_BYTES));
  return mp4;
}

async function readTexts(
  source: TextSource,
  tracks: readonly TextTrack[],
  { startSeconds, durationSeconds, signal, onMove }: ReadOptions,
): Promise<{ texts: ReadonlyMap<number, TrackText>; languages: ReadonlyMap<number, string> }> {
  /** What the text itself states, by the number of the track. */
  const languages = new Map<number, string>();
  const texts = new Map(tracks.map(({ number }) => [number, new TrackText(durationSeconds)]));
  const formats = new Map(tracks.map(({ number, format }) => [number, format]));
  const wanted = new Set(texts.keys());
  /** The last packet of each track that does not state its end. */
  const open = new Map<number, TextPacket>();
  const pace = pacer();
  let documentBytes = 0;
  const add = async (packet: TextPacket, endMs: number) => {
    const text = texts.get(packet.number);
    const format = formats.get(packet.number);
    if (!text || !format) return;
    if (format === "ttml") {
      documentBytes += packet.data?.length ?? 0;
      if (documentBytes > MAX_DOCUMENT_BYTES) text.overflow();
    }
    const read = text.isOver ? null : await cuesOf(format, packet, endMs);
    text.skip(read?.skipped ?? 1);
    if (read?.language != null && !languages.has(packet.number)) languages.set(packet.number, read.language);
    for (const { startMs, endMs, ...cue } of read?.cues ?? [])
      text.add(startMs - startSeconds * 1000, endMs - startSeconds * 1000, cue);
    if (text.isOver) wanted.delete(packet.number);
  };
  const close = async (number: number, nextMs: number) => {
    const packet = open.get(number);
    open.delete(number);
    if (packet) await add(packet, Math.min(nextMs, packet.startMs + MAX_OPEN_MS));
  };
  const step = () => {
    signal.throwIfAborted();
    onMove();
  };
  for await (const packet of source.packets({ wanted: () => wanted, step })) {
    await close(packet.number, packet.startMs);
    if (packet.endMs === null) open.set(packet.number, packet);
    else await add(packet, packet.endMs);
    await pace();
  }
  for (const number of open.keys()) await close(number, Number.POSITIVE_INFINITY);
  return { texts, languages };
}

const isStated = (language: string | null): boolean => language !== null && language !== "und";

/** The cues of a packet, with times on the timeline of the file; null for one that cannot be read. */
async function cuesOf(
  format: NonNullable<TextTrack["format"]>,
  { startMs, data, settings }: TextPacket,
  endMs: number,
): Promise<TtmlSample | null> {
  if (data === null) return null;
  if (format === "ttml") return runInSlices(readTtmlSample(data, { startMs, endMs }));
  const cues = readPacket(format, data, settings === undefined ? {} : { settings });
  return cues && { cues: cues.map((cue) => ({ ...cue, startMs, endMs })), skipped: 0, language: null };
}

/** As of other tracks that are left out. `reason` completes "Track 3 …". */
export const leftOut = ({ number, codec }: Pick<TextTrack, "number" | "codec">, reason: string): Warning => ({
  code: "track_skipped",
  message: `Track ${number} (subtitles, ${codec}) ${reason} and was left out.`,
});
