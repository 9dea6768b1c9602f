import { aac } from "./aac.ts";
import { av1 } from "./av1.ts";
import type { AudioCodec, VideoCodec } from "./codec.ts";
import { h264 } from "./h264.ts";
import { hevc } from "./hevc.ts";

/** All codecs, by name. */
export const videoCodecs = { h264, hevc, av1 } as const satisfies Record<string, VideoCodec>;
export const audioCodecs = { aac } as const satisfies Record<string, AudioCodec>;

/** The codecs of the renditions that every video has, and those of additional ones, in the order of manifests. */
export const primaryVideoCodecs = Object.values(videoCodecs).filter((codec) => "foreignArguments" in codec);
export const additionalVideoCodecs = Object.values(videoCodecs).filter((codec) => "defaults" in codec);
export const encodableAudioCodecs = Object.values(audioCodecs).filter((codec) => "settings" in codec);

const all: readonly (VideoCodec | AudioCodec)[] = [...Object.values(videoCodecs), ...Object.values(audioCodecs)];

/**
 * The name of the first codec of a list of codec strings (RFC 6381), or the string itself when it is not a known one.
 * @example
 * codecNameOf("avc1.64001f,mp4a.40.2") // => "h264"
 */
export const codecNameOf = (codecs: string): string => {
  const first = codecs.split(",", 1)[0] ?? "";
  return codecOfSampleEntry(first.split(".", 1)[0] ?? "")?.name ?? first;
};

/** The codec of a sample entry with this four-character code; undefined for any other. */
export const codecOfSampleEntry = (type: string): VideoCodec | AudioCodec | undefined =>
  all.find(({ sampleEntries }) => sampleEntries.includes(type));
