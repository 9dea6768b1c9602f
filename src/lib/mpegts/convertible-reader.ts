import {
  AUDIO_HEADER_BYTES,
  type ConvertibleCodec,
  OPUS_RATE,
  opusSamples,
  type ReadAudioHeader,
  readAc3Header,
  readMpegAudioHeader,
} from "#lib/codecs";
import { RejectedMedia } from "#lib/publishing";
import { FrameReader } from "./frame-reader.ts";
import type { ElementaryStream } from "./tables.ts";

type TimedFrame = { offsetSeconds: number; durationSeconds: number; data: Buffer };
/** As AdtsReader reads, whole frames of another codec. */
export type ConvertibleReader = { read(packet: Buffer): TimedFrame[]; reset(): void };

/** Throws RejectedMedia for more channels of Opus than a packet alone can have. */
export function convertibleReader(codec: ConvertibleCodec, stream: ElementaryStream): ConvertibleReader {
  if (codec !== "opus") return codec === "mpeg" ? frames(readMpegAudioHeader, 0xff) : frames(readAc3Header, 0x0b);
  if (opusChannels(stream.descriptors) > 2)
    throw new RejectedMedia("Opus with more than two channels is not supported. Use stereo, or AAC.");
  return { read: readOpus, reset: () => {} };
}

function frames(readHeader: ReadAudioHeader, firstByte: number): ConvertibleReader {
  const reader = new FrameReader({
    headerBytes: AUDIO_HEADER_BYTES,
    firstByte,
    readHeader: (data, at) => {
      const header = readHeader(data, at);
      return header && { ...header, seconds: header.samples / header.rate };
    },
    isSame: (one, other) => one.rate === other.rate && one.format === other.format,
  });
  return {
    read: (packet) =>
      reader
        .read(packet)
        .map(({ offsetSeconds, header, data }) => ({ offsetSeconds, durationSeconds: header.seconds, data })),
    reset: () => reader.reset(),
  };
}

/** Flags of opus_control_header (Opus in MPEG-TS, draft of 2015; ffmpeg, OBS and GStreamer write it). */
const PREFIX = 0x3ff;
const FLAG = { startTrim: 0x10, endTrim: 0x08, extension: 0x04 } as const;

/** The packets of Opus in a PES packet, each behind a control header. What is malformed ends it. */
function readOpus(packet: Buffer): TimedFrame[] {
  const read: TimedFrame[] = [];
  let seconds = 0;
  for (let at = 0; at + 3 <= packet.length; ) {
    if (packet.readUInt16BE(at) >> 5 !== PREFIX) break;
    const flags = packet[at + 1] as number;
    let bytes = 0;
    let start = at + 2;
    while (packet[start] === 0xff) {
      bytes += 0xff;
      start++;
    }
    bytes += packet[start++] ?? 0;
    if (flags & FLAG.startTrim) start += 2;
    if (flags & FLAG.endTrim) start += 2;
    if (flags & FLAG.extension) start += 1 + (packet[start] ?? 0);
    const data = packet.subarray(start, start + bytes);
    const samples = data.length === bytes ? opusSamples(data) : null;
    if (samples === null) break;
    const durationSeconds = samples / OPUS_RATE;
    read.push({ offsetSeconds: seconds, durationSeconds, data });
    seconds += durationSeconds;
    at = start + bytes;
  }
  return read;
}

const EXTENSION_DESCRIPTOR = 0x7f;
const OPUS_EXTENSION = 0x80;

/** channel_config_code of the descriptor; stereo where there is none. */
function opusChannels(descriptors: Buffer): number {
  for (let at = 0; at + 4 <= descriptors.length; at += 2 + (descriptors[at + 1] as number))
    if (descriptors[at] === EXTENSION_DESCRIPTOR && descriptors[at + 2] === OPUS_EXTENSION)
      return descriptors[at + 3] as number;
  return 2;
}
