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
  codecString: (esds) => `mp4a.40.${audioObjectType(esds.subarray(4))}`,

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

/**
 * Walks the nested descriptors (ISO/IEC 14496-1, 7.2.6) to the AudioSpecificConfig, whose first five bits are the
 * object type (ISO/IEC 14496-3, 1.6.2.1).
 */
function audioObjectType(descriptors: Buffer): number {
  let at = 0;
  const next = () => {
    const byte = descriptors[at++];
    if (byte === undefined) throw new Error("The init segment's esds is truncated.");
    return byte;
  };
  for (;;) {
    const tag = next();
    // The size, in as many bytes as have the first bit set, and one more.
    while (next() & 0x80);
    if (tag === DECODER_SPECIFIC_INFO) {
      const first = next();
      const type = first >> 3;
      return type === EXTENDED ? 32 + ((first & 7) << 3) + (next() >> 5) : type;
    }
    const fields = FIELD_BYTES.get(tag);
    if (fields === undefined) throw new Error("The init segment's esds has no AudioSpecificConfig.");
    at += fields;
  }
}
