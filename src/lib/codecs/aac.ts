import * as v from "valibot";
import type { EncodableAudioCodec } from "./codec.ts";

const SAMPLE_RATES: readonly number[] = [44_100, 48_000];
const LC = "mp4a.40.2";
/** ISO/IEC 14496-3, 4.4.2.1: by channels, a raw_data_block whose only section is empty, at any sample rate. */
const SILENT = new Map([
  [1, "00c800802380"],
  [2, "210049900219002380"],
  [6, "00c80080208401264008640082300499002190021832002008e0"],
]);

export const aac = {
  kind: "audio",
  name: "aac",
  sampleEntries: ["mp4a"],
  configurationBox: "esds",

  /** RFC 6381, 3.3, from the descriptors of the esds box (ISO/IEC 14496-14, 5.6), which follow its version and flags. */
  codecString: (esds) => `mp4a.40.${audioObjectType(esds.subarray(DESCRIPTORS))}`,
  bitrates: (esds) => bitratesOf(esds.subarray(DESCRIPTORS)),

  encoder: "aac",
  sampleFormat: "fltp",
  encoderArguments: ({ bitrate, channels, coder, sample_rate }) => [
    ...["-c:a", "aac", "-aac_coder", coder, "-b:a", String(bitrate)],
    ...["-ac", String(channels), "-ar", String(sample_rate)],
  ],
  settings: {
    codec: v.literal("aac"),
    profile: v.literal("lc"),
    sample_rate: v.picklist(SAMPLE_RATES),
    // Older servers did not state it.
    coder: v.optional(v.picklist(["fast", "twoloop"]), "fast"),
  },

  isCopyable: ({ profile, channels, sampleRate }) =>
    profile === "LC" && (channels === 1 || channels === 2) && SAMPLE_RATES.includes(sampleRate),
  /** ISO/IEC 14496-3: of AAC-LC. */
  packetSamples: 1024,
  silentPacket: (codecString, channels) =>
    codecString === LC && SILENT.has(channels) ? Buffer.from(SILENT.get(channels) as string, "hex") : null,
  /** No longer than that of our own encoder, because some players ignore the edit list that removes it. */
  maxDelayPackets: 1.1,
} as const satisfies EncodableAudioCodec;

/** Tags of descriptors (ISO/IEC 14496-1, 7.2.2.1), and the bytes of their fields before the nested descriptors. */
const ES_DESCRIPTOR = 0x03;
const DECODER_CONFIG = 0x04;
const DECODER_SPECIFIC_INFO = 0x05;
const FIELD_BYTES = new Map([
  [ES_DESCRIPTOR, 3],
  [DECODER_CONFIG, 13],
]);

/** The object type is in the following six bits. */
const EXTENDED = 31;

/** After version and flags. */
const DESCRIPTORS = 4;

const byteOf = (descriptors: Buffer, at: number): number => {
  const byte = descriptors[at];
  if (byte === undefined) throw new Error("The init segment's esds is truncated.");
  return byte;
};

/** The nested descriptors (ISO/IEC 14496-1, 7.2.6), and where the fields of each begin. */
function* nested(descriptors: Buffer): Generator<{ tag: number; at: number }> {
  for (let at = 0; ; ) {
    const tag = byteOf(descriptors, at++);
    // The size, in as many bytes as have the first bit set, and one more.
    while (byteOf(descriptors, at++) & 0x80);
    yield { tag, at };
    const fields = FIELD_BYTES.get(tag);
    if (fields === undefined) return;
    at += fields;
  }
}

/** The object type is in the first five bits of the AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1). */
function audioObjectType(descriptors: Buffer): number {
  const info = nested(descriptors).find(({ tag }) => tag === DECODER_SPECIFIC_INFO);
  if (!info) throw new Error("The init segment's esds has no AudioSpecificConfig.");
  const first = byteOf(descriptors, info.at);
  const type = first >> 3;
  return type === EXTENDED ? 32 + ((first & 7) << 3) + (byteOf(descriptors, info.at + 1) >> 5) : type;
}

/** A DecoderConfigDescriptor states the largest and the average bitrate after the type and the size of the buffer (7.2.6.6). */
function bitratesOf(descriptors: Buffer): Buffer {
  const config = nested(descriptors).find(({ tag }) => tag === DECODER_CONFIG);
  return config ? descriptors.subarray(config.at + 5, config.at + 13) : Buffer.alloc(0);
}
