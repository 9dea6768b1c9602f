import { RejectedMedia } from "#lib/publishing";
import { printable, skipModEx } from "./enhanced-header.ts";
import { FOURCC } from "./flv-fourcc.ts";
import { FlvReader } from "./flv-reader.ts";
import { readMultitrack, type TrackChoice } from "./multitrack.ts";
import type { Tag } from "./video-tag.ts";

/** SoundFormat (FLV 10.1, E.4.2.1); 9 marks an ExAudioTagHeader of Enhanced RTMP 2. */
const FORMAT = { enhanced: 9, aac: 10 } as const;
const AAC_PACKET = { sequenceHeader: 0, raw: 1 } as const;
/** AudioPacketType of Enhanced RTMP 2. */
const PACKET = { sequenceStart: 0, codedFrames: 1, multitrack: 5 } as const;
const LEGACY_CODECS: Record<number, string> = {
  0: "PCM",
  1: "ADPCM",
  2: "MP3",
  3: "PCM",
  4: "Nellymoser",
  5: "Nellymoser",
  6: "Nellymoser",
  7: "G.711",
  8: "G.711",
  11: "Speex",
  14: "MP3",
};
/** Object type, sampling frequency and channels (ISO/IEC 14496-3, 1.6.2.1). */
const CONFIGURATION_BYTES = 2;

const rejectCodec = (name: string) => new RejectedMedia(`The audio codec ${name} is not supported. Use AAC.`);

/** Reads an audio message (FLV 10.1, E.4.2; Enhanced RTMP 2, ExAudioTagHeader), as `readVideoTag` reads video. */
export function readAudioTag(payload: Buffer, timestamp: number, choice: TrackChoice): Tag | null {
  if (payload.length === 0) return null;
  const reader = new FlvReader(payload);
  const first = reader.byte();
  const format = first >> 4;
  if (format === FORMAT.enhanced) return readEnhanced(reader, first & 0x0f, { timestamp, choice });
  if (!choice.accepts()) return null;
  if (format !== FORMAT.aac) throw rejectCodec(LEGACY_CODECS[format] ?? `number ${format}`);
  const packetType = reader.byte();
  if (packetType === AAC_PACKET.sequenceHeader) return configTag(reader.rest());
  return packetType === AAC_PACKET.raw ? sampleTag(timestamp, reader.rest()) : null;
}

type Message = { timestamp: number; choice: TrackChoice };

function readEnhanced(reader: FlvReader, firstType: number, { timestamp, choice }: Message): Tag | null {
  const packetType = skipModEx(firstType, reader);
  if (packetType === PACKET.multitrack) {
    const track = readMultitrack(reader, choice);
    return track && readTrack(new FlvReader(track.body), { ...track, timestamp });
  }
  const fourCc = reader.fourCc();
  return choice.accepts() ? readTrack(reader, { packetType, fourCc, timestamp }) : null;
}

type Packet = { packetType: number; fourCc: string; timestamp: number };

function readTrack(reader: FlvReader, { packetType, fourCc, timestamp }: Packet): Tag | null {
  if (!FOURCC.audio.some((accepted) => accepted === fourCc)) throw rejectCodec(printable(fourCc));
  if (packetType === PACKET.sequenceStart) return configTag(reader.rest());
  return packetType === PACKET.codedFrames ? sampleTag(timestamp, reader.rest()) : null;
}

/** Null when it is empty: ffmpeg sends that first when it reads the configuration from the packets, as from ADTS, and then a real one. */
function configTag(configuration: Buffer): Tag | null {
  if (configuration.length === 0) return null;
  if (configuration.length < CONFIGURATION_BYTES)
    throw new RejectedMedia("The AAC configuration is not valid. Use another encoder, or encode the audio again.");
  return { config: { kind: "audio", codec: "aac", configuration } };
}

const sampleTag = (timestamp: number, data: Buffer): Tag | null =>
  data.length === 0 ? null : { sample: { kind: "audio", timestamp, compositionOffset: 0, isKeyframe: true, data } };
