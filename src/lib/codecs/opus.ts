/** Samples of Opus per second, whatever is coded. */
export const OPUS_RATE = 48_000;
/** 120 ms. */
const MAX_SAMPLES = 5760;

/**
 * Samples at 48 kHz of an Opus packet (RFC 6716, 3.1); null when it is malformed.
 * @example
 * opusSamples(Buffer.of(0xfc)) // => 960
 */
export function opusSamples(packet: Buffer): number | null {
  if (packet.length === 0) return null;
  const [toc, counts = 0] = packet as unknown as number[];
  const configuration = (toc as number) >> 3;
  const code = (toc as number) & 3;
  const frames = code === 0 ? 1 : code === 3 ? counts & 0x3f : 2;
  const samples = frames * frameSamples(configuration);
  return samples > 0 && samples <= MAX_SAMPLES ? samples : null;
}

function frameSamples(configuration: number): number {
  if (configuration < 12) return [480, 960, 1920, 2880][configuration & 3] as number;
  if (configuration < 16) return [480, 960][configuration & 1] as number;
  return [120, 240, 480, 960][configuration & 3] as number;
}
