import { type FileHandle, open } from "node:fs/promises";
import { pacer } from "#lib/base";
import { readSubtitleTracks, type TrackIndex } from "#lib/isobmff";
import { MAX_PACKET_BYTES, type PacketFormat } from "#lib/subtitles";
import { indexOfFile, type SourceIndex } from "../parallel/source-index.ts";
import { kindOf, type PacketOptions, type TextPacket, type TextSource, type TextTrack, titleOf } from "./text-track.ts";

/** Text tracks of MP4 and QuickTime files: their samples are read by the index of the file. */

/** Null for text that cannot be read; tracks of images are reported with those that cannot be decoded. */
const FORMATS: Record<string, PacketFormat | null> = {
  tx3g: "timed-text",
  text: "timed-text",
  wvtt: "webvtt-sample",
  ...{ stpp: null, sbtt: null, stxt: null },
};

/** An index that was read before, of a source of which only parts are there. */
type Options = { index: SourceIndex | null | undefined };

/** The text tracks of an MP4 file; null for another file. */
export async function openMp4Texts(
  path: string,
  { index: known }: Options,
): Promise<(TextSource & { index: SourceIndex }) | null> {
  const index = known ?? (await indexOfFile(path).catch(() => null));
  if (!index) return null;
  const file = await open(path);
  try {
    const [offset, length] = index.layout.moov;
    const moov = Buffer.alloc(length);
    await file.read(moov, 0, length, offset);
    const tracks = readSubtitleTracks(moov).flatMap((track): TextTrack[] => {
      const format = FORMATS[track.format];
      const { language, title } = track;
      const common = {
        number: track.index + 1,
        codec: track.format,
        language,
        title: titleOf(title),
        isDefault: false,
      };
      return format === undefined ? [] : [{ ...common, format, kind: kindOf(track) }];
    });
    return {
      index,
      tracks,
      packets: (reading) => readPackets(file, index, reading),
      [Symbol.asyncDispose]: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function* readPackets(
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
      yield { number, ...timesOf(track, at), data: await sampleOf(file, track, at) };
    }
  }
}

/** A sample lasts until the next one: pauses are samples without text. */
function timesOf({ pts, endSeconds }: TrackIndex, at: number): { startMs: number; endMs: number } {
  const start = pts[at] as number;
  return { startMs: start * 1000, endMs: (pts[at + 1] ?? endSeconds) * 1000 };
}

async function sampleOf(file: FileHandle, { offsets, sizes }: TrackIndex, at: number): Promise<Buffer | null> {
  const size = sizes[at] as number;
  if (size > MAX_PACKET_BYTES) return null;
  const data = Buffer.alloc(size);
  const { bytesRead } = await file.read(data, 0, size, offsets[at] as number);
  return data.subarray(0, bytesRead);
}
