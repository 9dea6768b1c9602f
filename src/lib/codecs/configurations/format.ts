import type { Rate } from "../rate.ts";

/** What an init segment states of a video. */
export type VideoFormat = {
  /** Pixels, after cropping. */
  width: number;
  height: number;
  /** Values of ISO/IEC 23091-2; null where the stream states none. */
  colors: { primaries: number; transfer: number; matrix: number; isFullRange: boolean } | null;
  /** The aspect ratio of a pixel; null where the stream does not state it. */
  aspect: { horizontal: number; vertical: number } | null;
  /** The frame rate that the stream states. It is a claim: the timestamps decide. */
  rate: Rate | null;
};

export type AudioFormat = {
  /** The sample rate of the decoded audio. */
  sampleRate: number;
  channels: number;
  /** Decoded samples of one packet. */
  packetSamples: number;
};

/** Thrown for a decoder configuration that is malformed or not supported. */
export class ConfigurationInvalid extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ConfigurationInvalid";
  }
}

/** As large as the largest frame that levels of H.264 and HEVC allow on a side. */
const MAX_SIDE = 16_888;

/** Throws ConfigurationInvalid for a size that no decoder supports. */
export function checkSize(width: number, height: number): void {
  if (!(width >= 16 && height >= 16 && width <= MAX_SIDE && height <= MAX_SIDE))
    throw new ConfigurationInvalid(`The video has the unsupported size ${width}x${height}.`);
}

/** Runs a reader. What it throws for malformed bytes becomes ConfigurationInvalid. */
export function reading<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ConfigurationInvalid) throw error;
    throw new ConfigurationInvalid(`The ${what} is malformed: ${error instanceof Error ? error.message : error}`);
  }
}
