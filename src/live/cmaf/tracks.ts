import {
  type AudioFormat,
  audioCodecs,
  readAudioFormat,
  reading,
  readVideoFormat,
  type TrackConfig,
  type VideoFormat,
} from "#lib/codecs";
import { readInit, writeInit } from "#lib/isobmff";
import { VIDEO_TIMESCALE } from "./frame-clock.ts";
import type { TrackInfo } from "./types.ts";

/** A track as its configuration describes it, before there is a sample. */
type Described<Format> = {
  format: Format;
  info: TrackInfo;
  timescale: number;
  /** Its init segment, when its presentation begins at that media time. */
  init: (delay: number) => Buffer;
};
export type DescribedVideo = Described<VideoFormat> & { config: Extract<TrackConfig, { kind: "video" }> };
export type DescribedAudio = Described<AudioFormat> & {
  config: Extract<TrackConfig, { kind: "audio" }>;
  /** A packet of silence; null where none is known for the format. */
  silence: Buffer | null;
};

/** Throws ConfigurationInvalid when it is malformed, or when segments of it could not be packaged as video on demand. */
export function describeVideo(
  config: DescribedVideo["config"],
  { partSeconds }: { partSeconds: number },
): DescribedVideo {
  const format = readVideoFormat(config);
  const init = (delay: number) => writeInit({ kind: "video", config, format }, { timescale: VIDEO_TIMESCALE, delay });
  const { codec, width, height } = reading("configuration", () => readInit(init(0)));
  // Renditions are named by the short side (src/media/ladder.ts).
  const name = `${Math.floor(Math.min(width, height) / 2) * 2}p`;
  const audio = { sampleRate: null, channels: null };
  const info: TrackInfo = { kind: "video", name, codec, width, height, ...audio, maxPartSeconds: partSeconds };
  return { config, format, info, timescale: VIDEO_TIMESCALE, init };
}

/** Throws ConfigurationInvalid. */
export function describeAudio(
  config: DescribedAudio["config"],
  { partSeconds }: { partSeconds: number },
): DescribedAudio {
  const format = readAudioFormat(config);
  const { sampleRate, channels, packetSamples } = format;
  const init = (delay: number) => writeInit({ kind: "audio", config, format }, { timescale: sampleRate, delay });
  const { codec } = reading("configuration", () => readInit(init(0)));
  const info: TrackInfo = {
    kind: "audio",
    name: "audio",
    codec,
    width: null,
    height: null,
    sampleRate,
    channels,
    maxPartSeconds: partSeconds + packetSamples / sampleRate,
  };
  // A silent packet is known for the usual 1024 samples only.
  const silence = packetSamples === 1024 ? audioCodecs[config.codec].silentPacket(codec, channels) : null;
  return { config, format, info, timescale: sampleRate, init, silence };
}
