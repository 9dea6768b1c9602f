import { type LiveSample, type LiveVideoCodec, readAudioFormat, readVideoFormat, type TrackConfig } from "#lib/codecs";
import { amfObject, encodeAmf0, encodeEcmaArray } from "./amf0.ts";
import { VIDEO_FOURCC } from "./flv-fourcc.ts";

/** Messages of audio and video, as FLV 10.1 (annex E) and Enhanced RTMP 2 define them: what `readVideoTag` reads. */

const FRAME = { key: 1, inter: 2 } as const;
const AVC = 7;
/** AAC, and the values that FLV prescribes for it: 44 kHz, 16 bits, stereo (E.4.2.1). */
const AAC = 0xaf;
const AAC_ID = 10;
const PACKET = { config: 0, frame: 1 } as const;

const FOURCC_OF = Object.fromEntries([...VIDEO_FOURCC].map(([code, codec]) => [codec, code])) as Record<
  LiveVideoCodec,
  string
>;

/** FourCCs that a client announces when it sends this codec; none for H.264, which every server knows. */
export const announcedFourCcs = (codec: LiveVideoCodec): string[] => (codec === "h264" ? [] : [FOURCC_OF[codec]]);

/** The payload of a sequence header. */
export function configPayload(config: TrackConfig): Buffer {
  if (config.kind === "audio") return Buffer.concat([Buffer.from([AAC, PACKET.config]), config.configuration]);
  return Buffer.concat([videoHead(config.codec, FRAME.key, PACKET.config, null), config.configuration]);
}

/** The payload of a frame or packet. `codec` is that of the video; undefined without a configuration. */
export function samplePayload(
  { kind, isKeyframe, compositionOffset, data }: LiveSample,
  codec: LiveVideoCodec = "h264",
): Buffer {
  if (kind === "audio") return Buffer.concat([Buffer.from([AAC, PACKET.frame]), data]);
  const frame = isKeyframe ? FRAME.key : FRAME.inter;
  return Buffer.concat([videoHead(codec, frame, PACKET.frame, compositionOffset), data]);
}

/** `compositionOffset` in milliseconds; null for a configuration. */
function videoHead(codec: LiveVideoCodec, frame: number, packet: number, compositionOffset: number | null): Buffer {
  if (codec === "h264") {
    const head = Buffer.from([(frame << 4) | AVC, packet, 0, 0, 0]);
    head.writeIntBE(int24(compositionOffset ?? 0), 2, 3);
    return head;
  }
  const head = Buffer.from([0x80 | (frame << 4) | packet, ...Buffer.from(FOURCC_OF[codec], "latin1")]);
  // AV1 has no composition time, and a configuration neither.
  if (codec === "av1" || compositionOffset === null) return head;
  const offset = Buffer.alloc(3);
  offset.writeIntBE(int24(compositionOffset), 0, 3);
  return Buffer.concat([head, offset]);
}

const int24 = (value: number) => Math.max(-0x80_00_00, Math.min(0x7f_ff_ff, Math.round(value)));

/** The payload of `@setDataFrame` with onMetaData (E.5). Throws ConfigurationInvalid. */
export function metadataPayload({ video, audio }: Partial<Record<TrackConfig["kind"], TrackConfig>>): Buffer {
  const fields: Record<string, number | string | boolean> = { duration: 0, encoder: "vodbox" };
  if (video?.kind === "video") {
    const { width, height, rate } = readVideoFormat(video);
    const id = video.codec === "h264" ? AVC : Buffer.from(FOURCC_OF[video.codec], "latin1").readUInt32BE();
    Object.assign(fields, { width, height, videocodecid: id });
    if (rate) fields.framerate = rate.num / rate.den;
  }
  if (audio?.kind === "audio") {
    const { sampleRate, channels } = readAudioFormat(audio);
    Object.assign(fields, { audiocodecid: AAC_ID, audiosamplerate: sampleRate, audiosamplesize: 16 });
    fields.stereo = channels > 1;
  }
  return Buffer.concat([encodeAmf0("@setDataFrame", "onMetaData"), encodeEcmaArray(amfObject(fields))]);
}
