import type { ConvertibleCodec } from "#lib/codecs";
import { RejectedMedia, rejectedAudio } from "#lib/publishing";
import { printable, skipModEx } from "./enhanced-header.ts";
import { AUDIO_FOURCC } from "./flv-fourcc.ts";
import { FlvReader } from "./flv-reader.ts";
import { readMultitrack, type TrackChoice } from "./multitrack.ts";
import type { Tag } from "./video-tag.ts";

/** SoundFormat (FLV 10.1, E.4.2.1); 9 marks an ExAudioTagHeader of Enhanced RTMP 2. */
const FORMAT = { mp3: 2, enhanced: 9, aac: 10, mp3At8kHz: 14 } as const;
const AAC_PACKET = { sequenceHeader: 0, raw: 1 } as const;
/** AudioPacketType of Enhanced RTMP 2. */
const PACKET = { sequenceStart: 0, codedFrames: 1, multitrack: 5 } as const;
const LEGACY_CODECS: Record<number, string> = {
  0: "PCM",
  1: "ADPCM",
  3: "PCM",
  4: "Nellymoser",
  5: "Nellymoser",
  6: "Nellymoser",
  7: "G.711",
  8: "G.711",
  11: "Speex",
};
/** Object type, sampling frequency and channels (ISO/IEC 14496-3, 1.6.2.1). */
const CONFIGURATION_BYTES = 2;

/** Reads an audio message (FLV 10.1, E.4.2; Enhanced RTMP 2, ExAudioTagHeader), as `readVideoTag` reads video. */
export function readAudioTag(payload: Buffer, timestamp: number, choice: TrackChoice): Tag | null {
  if (payload.length === 0) return null;
  const reader = new FlvReader(payload);
  const first = reader.byte();
  const format = first >> 4;
  if (format === FORMAT.enhanced) return readEnhanced(reader, first & 0x0f, { timestamp, choice });
  if (!choice.accepts()) return null;
  if (format === FORMAT.mp3 || format === FORMAT.mp3At8kHz)
    return convertibleTag({ codec: "mpeg", name: "MP3" }, timestamp, reader.rest());
  if (format !== FORMAT.aac) throw rejectedAudio(LEGACY_CODECS[format] ?? `number ${format}`);
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
  const convertible = AUDIO_FOURCC.get(fourCc);
  if (convertible === undefined) throw rejectedAudio(printable(fourCc));
  // What begins a sequence of Opus is its identification header, which says nothing that its packets do not.
  if (convertible !== "aac")
    return packetType === PACKET.codedFrames ? convertibleTag(convertible, timestamp, reader.rest()) : null;
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

const convertibleTag = (
  { codec, name }: { codec: ConvertibleCodec; name: string },
  timestamp: number,
  data: Buffer,
): Tag | null => (data.length === 0 ? null : { convertible: { codec, timestamp, data }, name });

const sampleTag = (timestamp: number, data: Buffer): Tag | null =>
  data.length === 0 ? null : { sample: { kind: "audio", timestamp, compositionOffset: 0, isKeyframe: true, data } };
