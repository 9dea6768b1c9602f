import type { ConvertibleAudio, LiveSample, LiveVideoCodec, TrackConfig } from "#lib/codecs";
import { RejectedMedia } from "#lib/publishing";
import { printable, skipModEx } from "./enhanced-header.ts";
import { RtmpFault } from "./fault.ts";
import { VIDEO_FOURCC } from "./flv-fourcc.ts";
import { FlvReader } from "./flv-reader.ts";
import { readMultitrack, type TrackChoice } from "./multitrack.ts";

export type Tag =
  | { config: TrackConfig }
  | { sample: LiveSample }
  /** `name`: of its codec, for people. */
  | { convertible: ConvertibleAudio; name: string };

/** Frame types (FLV 10.1, E.4.3.1). `generatedKey` is reserved for servers, and decodable as any keyframe. */
const FRAME = { key: 1, generatedKey: 4, command: 5 } as const;
const AVC = 7;
const AVC_PACKET = { sequenceHeader: 0, nalUnits: 1 } as const;
/** VideoPacketType of Enhanced RTMP 2. */
const PACKET = { sequenceStart: 0, codedFrames: 1, codedFramesX: 3, metadata: 4, multitrack: 6 } as const;
const LEGACY_CODECS: Record<number, string> = {
  2: "Sorenson H.263",
  3: "Screen video",
  4: "VP6",
  5: "VP6",
  12: "HEVC",
};

const rejectCodec = (name: string) =>
  new RejectedMedia(`The video codec ${name} is not supported. Use H.264, or HEVC or AV1 with Enhanced RTMP.`);

/**
 * Reads a video message (FLV 10.1, E.4.3; Enhanced RTMP 2, ExVideoTagHeader). Null when it carries neither a
 * configuration nor a frame of the track that `choice` accepts. Throws RejectedMedia for a codec or feature that is not supported, RtmpFault when the
 * message is truncated. Buffers of the result are parts of `payload`.
 */
export function readVideoTag(payload: Buffer, timestamp: number, choice: TrackChoice): Tag | null {
  if (payload.length === 0) return null;
  const reader = new FlvReader(payload);
  const first = reader.byte();
  const tag = { frameType: (first >> 4) & 7, reader, timestamp, choice };
  return first & 0x80 ? readEnhanced(tag, first & 0x0f) : readLegacy(tag, first & 0x0f);
}

type Head = { frameType: number; reader: FlvReader; timestamp: number; choice: TrackChoice };

function readLegacy({ frameType, reader, timestamp, choice }: Head, codecId: number): Tag | null {
  if (frameType === FRAME.command || !choice.accepts()) return null;
  if (codecId !== AVC) throw rejectCodec(LEGACY_CODECS[codecId] ?? `number ${codecId}`);
  const packetType = reader.byte();
  if (packetType !== AVC_PACKET.sequenceHeader && packetType !== AVC_PACKET.nalUnits) return null;
  const compositionOffset = reader.int24();
  if (packetType === AVC_PACKET.sequenceHeader) return configTag("h264", reader.rest());
  return sampleTag(frameType, timestamp, compositionOffset, reader.rest());
}

function readEnhanced({ frameType, reader, timestamp, choice }: Head, firstType: number): Tag | null {
  const packetType = skipModEx(firstType, reader);
  if (packetType === PACKET.metadata || frameType === FRAME.command) return null;
  if (packetType === PACKET.multitrack) {
    const track = readMultitrack(reader, choice);
    return track && readTrack({ frameType, reader: new FlvReader(track.body), timestamp }, track);
  }
  const fourCc = reader.fourCc();
  return choice.accepts() ? readTrack({ frameType, reader, timestamp }, { packetType, fourCc }) : null;
}

function readTrack(
  { frameType, reader, timestamp }: Omit<Head, "choice">,
  { packetType, fourCc }: { packetType: number; fourCc: string },
): Tag | null {
  const codec = VIDEO_FOURCC.get(fourCc);
  if (!codec) throw rejectCodec(printable(fourCc));
  switch (packetType) {
    case PACKET.sequenceStart:
      return configTag(codec, reader.rest());
    case PACKET.codedFrames:
      // AV1 has no composition time: its decode order is its presentation order.
      return sampleTag(frameType, timestamp, codec === "av1" ? 0 : reader.int24(), reader.rest());
    case PACKET.codedFramesX:
      return sampleTag(frameType, timestamp, 0, reader.rest());
    default:
      return null;
  }
}

function sampleTag(frameType: number, timestamp: number, compositionOffset: number, data: Buffer): Tag | null {
  if (data.length === 0) return null;
  const isKeyframe = frameType === FRAME.key || frameType === FRAME.generatedKey;
  return { sample: { kind: "video", timestamp, compositionOffset, isKeyframe, data } };
}

/** Bytes before the variable part: ISO/IEC 14496-15, 5.3.3.1 and 8.3.3.1; AV1 in ISOBMFF, 2.3. */
const CONFIGURATION_BYTES: Record<LiveVideoCodec, number> = { h264: 7, hevc: 23, av1: 4 };
/** Position of lengthSizeMinusOne, in the two low bits. */
const LENGTH_SIZE_AT = { h264: 4, hevc: 21 } as const;
/** Marker and version of av1C. */
const AV1_FIRST_BYTE = 0x81;

function configTag(codec: LiveVideoCodec, configuration: Buffer): Tag {
  const first = codec === "av1" ? AV1_FIRST_BYTE : 1;
  if (configuration.length < CONFIGURATION_BYTES[codec] || configuration[0] !== first)
    throw new RtmpFault(`The ${codec} configuration is not valid.`);
  if (codec !== "av1" && ((configuration[LENGTH_SIZE_AT[codec]] as number) & 3) !== 3)
    throw new RejectedMedia("NAL units must have lengths of 4 bytes. Use another encoder or its default setting.");
  return { config: { kind: "video", codec, configuration } };
}
