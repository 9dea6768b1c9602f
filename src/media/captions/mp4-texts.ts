import { type FileHandle, open } from "node:fs/promises";
import { MAX_SUBTITLE_BYTES, pacer } from "#lib/base";
import {
  type FragmentTrack,
  type PresentedSample,
  readFragmentTracks,
  readSubtitleTracks,
  readTextSamples,
  samplesOfFragment,
} from "#lib/isobmff";
import { MAX_PACKET_BYTES } from "#lib/subtitles";
import { boxesOf, bytesAt, findMoov } from "../mp4-boxes.ts";
import type { SourceIndex } from "../parallel/source-index.ts";
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
 * Text tracks of MP4 and QuickTime files: their samples are read by the tables of the track, or by those of the fragments (ISO/IEC
 * 14496-12, 8.6 and 8.8), as its edit list presents them.
 */

/** Null for text that cannot be read; tracks of images are reported with those that cannot be decoded. */
const FORMATS: Record<string, TextTrack["format"]> = {
  tx3g: "timed-text",
  text: "timed-text",
  wvtt: "webvtt-sample",
  stpp: "ttml",
  sbtt: null,
  stxt: null,
};
const MAX_MOOF_BYTES = 8 * 2 ** 20;

type Options = {
  /** Read before, of a source of which only parts are there. */
  index: SourceIndex | null | undefined;
};

/** Where the samples of text are, of a file without fragments. */
export type Mp4Texts = TextSource & { samples: PresentedSample[] };

/** The text tracks of an MP4 file; null for another file. */
export async function openMp4Texts(path: string, { index }: Options): Promise<Mp4Texts | null> {
  const file = await open(path);
  try {
    const layout = index ? index.layout.moov : await findMoov(file);
    if (!layout) {
      await file.close();
      return null;
    }
    const moov = await bytesAt(file, ...layout);
    const described = readSubtitleTracks(moov);
    const fragments = fragmentsOf(moov, described);
    const samples = new Map<number, PresentedSample[]>();
    const tracks = described.flatMap(({ format: type, language, title, ...track }): TextTrack[] => {
      const format = FORMATS[type];
      if (format === undefined) return [];
      const number = track.index + 1;
      const own = format === null || fragments ? null : readTextSamples(moov, track.index);
      if (own) samples.set(number, own);
      const isReadable = own !== null || fragments?.has(track.id) === true;
      const stated = { language: languageOf(language), title: titleOf(title) };
      const common = { number, codec: type, isDefault: false, ...stated };
      return [{ ...common, format: isReadable ? format : null, kind: kindOf(track) }];
    });
    const numbers = new Map(described.map(({ id, index }) => [id, index + 1]));
    const limits = new Map(
      tracks.map(({ number, format }) => [number, format === "ttml" ? MAX_SUBTITLE_BYTES : MAX_PACKET_BYTES]),
    );
    return {
      tracks,
      samples: [...samples.values()].flat(),
      packets: (options) =>
        fragments
          ? fragmentPackets(file, { tracks: fragments, numbers, limits }, options)
          : samplePackets(file, { samples, limits }, options),
      [Symbol.asyncDispose]: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Null where there are none, and for a malformed index. */
function fragmentsOf(moov: Buffer, tracks: readonly { id: number }[]): ReadonlyMap<number, FragmentTrack> | null {
  try {
    return readFragmentTracks(moov, new Set(tracks.map(({ id }) => id)));
  } catch {
    return null;
  }
}

/** The largest packets of tracks, in bytes. */
type Limits = ReadonlyMap<number, number>;
type Indexed = { samples: ReadonlyMap<number, PresentedSample[]>; limits: Limits };

/** Ends with the first sample that is not in the file. A sample lasts until the next one: pauses are samples without text. */
async function* samplePackets(
  file: FileHandle,
  { samples, limits }: Indexed,
  { wanted, step }: PacketOptions,
): AsyncGenerator<TextPacket> {
  const { size: fileSize } = await file.stat();
  const pace = pacer();
  for (const [number, own] of samples)
    for (const { start, end, offset, size } of own) {
      await pace();
      step();
      if (!wanted().has(number) || offset + size > fileSize) break;
      yield {
        number,
        startMs: start * 1000,
        endMs: end * 1000,
        data: await sampleAt(file, limits.get(number), offset, size),
      };
    }
}

type Fragments = {
  tracks: ReadonlyMap<number, FragmentTrack>;
  numbers: ReadonlyMap<number, number>;
  limits: Limits;
};

async function* fragmentPackets(
  file: FileHandle,
  { tracks, numbers, limits }: Fragments,
  { wanted, step }: PacketOptions,
): AsyncGenerator<TextPacket> {
  for await (const { type, at: moofAt, size } of boxesOf(file, step)) {
    if (wanted().size === 0) return;
    if (type !== "moof" || size > MAX_MOOF_BYTES) continue;
    for (const sample of samplesOfFragment(await bytesAt(file, moofAt, size), tracks, moofAt)) {
      const number = numbers.get(sample.id);
      if (number === undefined || !wanted().has(number)) continue;
      const data = await sampleAt(file, limits.get(number), moofAt + sample.at, sample.size);
      yield { number, startMs: sample.start * 1000, endMs: sample.end * 1000, data };
    }
  }
}

/** Null for one that is larger than a packet of its track, or not in the file. */
async function sampleAt(
  file: FileHandle,
  limit: number | undefined,
  offset: number,
  size: number,
): Promise<Buffer | null> {
  if (limit === undefined || size > limit || offset < 0 || !Number.isSafeInteger(offset)) return null;
  return bytesAt(file, offset, size);
}
