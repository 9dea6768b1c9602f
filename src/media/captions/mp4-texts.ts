import { type FileHandle, open } from "node:fs/promises";
import { pacer } from "#lib/base";
import {
  type FragmentTrack,
  readFragmentTracks,
  readSubtitleTracks,
  samplesOfFragment,
  type TrackIndex,
} from "#lib/isobmff";
import { MAX_PACKET_BYTES, type PacketFormat } from "#lib/subtitles";
import { indexOfFile, type SourceIndex } from "../parallel/source-index.ts";
import {
  kindOf,
  languageOf,
  type PacketOptions,
  type TextPacket,
  type TextSource,
  type TextTrack,
  titleOf,
} from "./text-track.ts";

/*
 * Text tracks of MP4 and QuickTime files: their samples are read by the index of the file, or by those of its fragments (ISO/IEC
 * 14496-12, 8.8).
 */

/** Null for text that cannot be read; tracks of images are reported with those that cannot be decoded. */
const FORMATS: Record<string, PacketFormat | null> = {
  tx3g: "timed-text",
  text: "timed-text",
  wvtt: "webvtt-sample",
  ...{ stpp: null, sbtt: null, stxt: null },
};
const HEADER_BYTES = 16;
const MAX_MOOV_BYTES = 64 * 2 ** 20;
const MAX_MOOF_BYTES = 8 * 2 ** 20;

/** An index that was read before, of a source of which only parts are there. */
type Options = { index: SourceIndex | null | undefined };

/** The text tracks of an MP4 file; null for another file. `index` is null for one with fragments. */
export async function openMp4Texts(
  path: string,
  { index: known }: Options,
): Promise<(TextSource & { index: SourceIndex | null }) | null> {
  const index = known ?? (await indexOfFile(path).catch(() => null));
  const file = await open(path);
  try {
    const layout = index ? index.layout.moov : await findMoov(file);
    if (!layout) {
      await file.close();
      return null;
    }
    const moov = await bytesAt(file, ...layout);
    const described = readSubtitleTracks(moov);
    const fragments = index ? null : fragmentsOf(moov, described);
    const tracks = described.flatMap(({ format: type, language, title, ...track }): TextTrack[] => {
      const format = FORMATS[type];
      if (format === undefined) return [];
      const isReadable = index !== null || (fragments?.has(track.id) ?? false);
      const common = { number: track.index + 1, codec: type, isDefault: false };
      const stated = { language: languageOf(language), title: titleOf(title) };
      return [{ ...common, ...stated, format: isReadable ? format : null, kind: kindOf(track) }];
    });
    const numbers = new Map(described.map(({ id, index }) => [id, index + 1]));
    return {
      index,
      tracks,
      packets: (options) =>
        index
          ? indexedPackets(file, index, options)
          : fragmentPackets(file, { tracks: fragments ?? new Map(), numbers }, options),
      [Symbol.asyncDispose]: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Null for a malformed index. */
function fragmentsOf(moov: Buffer, tracks: readonly { id: number }[]): ReadonlyMap<number, FragmentTrack> | null {
  try {
    return readFragmentTracks(moov, new Set(tracks.map(({ id }) => id)));
  } catch {
    return null;
  }
}

async function bytesAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const data = Buffer.alloc(length);
  const { bytesRead } = await file.read(data, 0, length, offset);
  return data.subarray(0, bytesRead);
}

type TopBox = { type: string; at: number; size: number };

/** The boxes of a file, by their heads; ends at what is none. */
async function* boxesOf(file: FileHandle, step: () => void = () => {}): AsyncGenerator<TopBox> {
  const { size: end } = await file.stat();
  const pace = pacer();
  for (let at = 0; at < end; ) {
    await pace();
    step();
    const head = await bytesAt(file, at, HEADER_BYTES);
    if (head.length < 8) return;
    const type = head.toString("latin1", 4, 8);
    const short = head.readUInt32BE(0);
    const stated = short === 1 && head.length === HEADER_BYTES ? Number(head.readBigUInt64BE(8)) : short;
    const size = stated === 0 ? end - at : stated;
    if (size < 8 || !/^[\x20-\x7e\xa9]{4}$/.test(type)) return;
    yield { type, at, size: Math.min(size, end - at) };
    at += size;
  }
}

async function findMoov(file: FileHandle): Promise<readonly [offset: number, length: number] | null> {
  let isFirst = true;
  for await (const { type, at, size } of boxesOf(file)) {
    if (isFirst && type !== "ftyp" && type !== "moov") return null;
    isFirst = false;
    if (type === "moov") return size <= MAX_MOOV_BYTES ? [at, size] : null;
  }
  return null;
}

async function* indexedPackets(
  file: FileHandle,
  { tracks }: SourceIndex,
  { wanted, step }: PacketOptions,
): AsyncGenerator<TextPacket> {
  const pace = pacer();
  for (const number of wanted()) {
    const track = tracks[number - 1];
    if (!track) continue;
    for (const at of track.sizes.keys()) {
      await pace();
      step();
      if (!wanted().has(number)) break;
      const data = await sampleAt(file, track.offsets[at] as number, track.sizes[at] as number);
      yield { number, ...timesOf(track, at), data };
    }
  }
}

/** A sample lasts until the next one: pauses are samples without text. */
function timesOf({ pts, endSeconds }: TrackIndex, at: number): { startMs: number; endMs: number } {
  const start = pts[at] as number;
  return { startMs: start * 1000, endMs: (pts[at + 1] ?? endSeconds) * 1000 };
}

type Fragments = { tracks: ReadonlyMap<number, FragmentTrack>; numbers: ReadonlyMap<number, number> };

async function* fragmentPackets(
  file: FileHandle,
  { tracks, numbers }: Fragments,
  { wanted, step }: PacketOptions,
): AsyncGenerator<TextPacket> {
  for await (const { type, at: moofAt, size } of boxesOf(file, step)) {
    if (wanted().size === 0) return;
    if (type !== "moof" || size > MAX_MOOF_BYTES) continue;
    for (const sample of samplesOfFragment(await bytesAt(file, moofAt, size), tracks, moofAt)) {
      const number = numbers.get(sample.id);
      if (number === undefined || !wanted().has(number)) continue;
      const data = await sampleAt(file, moofAt + sample.at, sample.size);
      yield { number, startMs: sample.start * 1000, endMs: sample.end * 1000, data };
    }
  }
}

/** Null for one that is too large, or not in the file. */
async function sampleAt(file: FileHandle, offset: number, size: number): Promise<Buffer | null> {
  if (size > MAX_PACKET_BYTES || offset < 0 || !Number.isSafeInteger(offset)) return null;
  return bytesAt(file, offset, size);
}
