/**
 * AAC-LC packets (ISO/IEC 14496-3, raw_data_block) that decode to silence at any sample rate, by channels: elements whose
 * only section is empty.
 */
const PACKETS = new Map([
  [1, "00c800802380"],
  [2, "210049900219002380"],
]);

/** Samples in each of these packets. */
export const SILENCE_SAMPLES = 1024;

/** A silent packet for a track, or null for a codec or layout that has none here. */
export function silentPacket(codec: string, channels: number): Buffer | null {
  const hex = codec === "mp4a.40.2" ? PACKETS.get(channels) : undefined;
  return hex === undefined ? null : Buffer.from(hex, "hex");
}
