import type { TrackConfig } from "../samples.ts";
import { readAac } from "./aac.ts";
import { readAv1 } from "./av1.ts";
import { type AudioFormat, ConfigurationInvalid, reading, type VideoFormat } from "./format.ts";
import { readH264 } from "./h264.ts";
import { readHevc } from "./hevc.ts";

/** A configuration is repeated in each init segment and compared with each that follows. */
const MAX_BYTES = 64 * 1024;
/** The descriptors of an esds box state their sizes in one byte. */
const MAX_AUDIO_BYTES = 64;

const READERS = { h264: readH264, hevc: readHevc, av1: readAv1 };
type VideoConfig = Extract<TrackConfig, { kind: "video" }>;
type AudioConfig = Extract<TrackConfig, { kind: "audio" }>;

/** Throws ConfigurationInvalid. */
export function readVideoFormat({ codec, configuration }: VideoConfig): VideoFormat {
  if (configuration.length > MAX_BYTES) throw new ConfigurationInvalid("The video's configuration is too large.");
  return reading(`configuration of ${codec}`, () => READERS[codec](configuration));
}

/** Throws ConfigurationInvalid. */
export function readAudioFormat({ configuration }: AudioConfig): AudioFormat {
  if (configuration.length > MAX_AUDIO_BYTES) throw new ConfigurationInvalid("The AudioSpecificConfig is too large.");
  return reading("AudioSpecificConfig", () => readAac(configuration));
}
