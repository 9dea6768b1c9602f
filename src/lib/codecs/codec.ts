import type { GenericSchema } from "valibot";
import type { Encoder } from "./encoders.ts";
import type { CicpColors, HdrFormat, HdrMetadata } from "./hdr.ts";

/**
 * The rungs are chosen for each source, within the ladder. Another value of `rate_control` than before: workers of versions
 * without it refuse the specification, instead of encoding the ladder.
 */
export const PER_TITLE = "per_title";

type Codec = {
  /** As in ffmpeg, ffprobe and the encoding specification. */
  name: string;
  /** Four-character codes of its sample entries (ISO/IEC 14496-12, 8.5.2). */
  sampleEntries: readonly string[];
  /** The box of a sample entry with the configuration of the decoder. */
  configurationBox: string;
  /**
   * The codec string (RFC 6381) for the content of that box, which comes from a file, and for the colors that its sample
   * entry states. Throws Error when it is truncated or not supported.
   */
  codecString(configuration: Buffer, sampleEntry: string, colors?: CicpColors | null): string;
  /**
   * The part of the content of that box that states bitrates, which decoders ignore. Throws Error as `codecString`. Absent:
   * it states none.
   */
  bitrates?(configuration: Buffer): Buffer;
};

/** A codec that can be recognized in files. Only an `EncodableVideoCodec` can also be produced. */
export type VideoCodec = Codec & {
  kind: "video";
  /** In the video descriptions for VR players. */
  vrName: string;
  /**
   * What each keyframe states of the configuration of the decoder by itself, and decoders obey; null when that is missing
   * or truncated. Absent: all of it is in the box.
   */
  configurationIn?(keyframe: Buffer): Buffer | null;
};
export type AudioCodec = Codec & { kind: "audio" };

type Settings<Required extends string> = { readonly [N in Required]: GenericSchema } & {
  readonly [name: string]: GenericSchema;
};

type EncoderArguments = (limits: BitrateLimits, settings: VideoSettings) => string[];

export type EncodableVideoCodec = VideoCodec & {
  /** ffmpeg's encoder that needs no hardware. */
  softwareEncoder: string;
  /** ffmpeg's output options. Every forced keyframe must be one where a decoder can start; there may be no others. */
  encoderArguments: Readonly<Record<Encoder, EncoderArguments>>;
  /** The values of the encoding specification that the encoders support, as valibot entries. */
  settings: Settings<"codec" | "profile" | "pixel_format" | "rate_control" | "preset">;
  maxCrf: number;
};

/** A codec that every player knows: its renditions are always produced. */
export type PrimaryVideoCodec = EncodableVideoCodec & {
  /** The software encoder's, for frames between those of another encoder: the id that its parameter sets get. */
  foreignArguments(parameterSetId: number): string[];
  /** The largest frame, in pixels. */
  maxPixels: number;
  /** Whether any device that plays the renditions also plays a track of this codec in a source unchanged. */
  isCopyable: IsCopyable;
};

/** `isOriginal`: it is for players that choose it because they can play it, such as those of VR headsets. */
type IsCopyable = (track: SourceVideo, isOriginal: boolean) => boolean;

/** The format of additional renditions. */
type Format = { readonly profile: string; readonly pixel_format: string };

/** A codec of additional renditions, for players that know it. */
export type AdditionalVideoCodec = EncodableVideoCodec & {
  /** What the server's profiles specify: the caps are a share of those of the same rung of the primary codec. */
  defaults: {
    readonly settings: Readonly<Record<"codec" | "profile" | "pixel_format" | "rate_control" | "preset", string>>;
    readonly crf: number;
    readonly bitrateShare: number;
  };
  /** What a specification states instead where HDR is kept: that of renditions of HDR video. Those of SDR have the default. */
  hdrFormat: Format;
  /** The smallest width and height, in pixels. */
  minSide: number;
  /** Whether players of the codec play a track of it in a source unchanged. */
  isCopyable: IsCopyable;
  /** How such a track is copied. */
  copy: VideoCopy;
};

export type VideoCopy = {
  /** ffmpeg's output options. */
  readonly arguments: readonly string[];
  /** What removes configurations from the frames that repeat those of the sample entry, where these are not allowed. */
  readonly withoutRepeats: readonly string[];
  /** Examines what was copied, with the content of its configuration box. Throws Error when that is truncated. */
  inspect(configuration: Buffer): CopyInspector;
};

/** `faultOf` returns why a frame cannot be part of a rendition, as a clause; null when it can. Frames come in order. */
export type CopyInspector = {
  /** `isSync`: the file states that a decoder can start there. */
  faultOf(frame: Buffer, isSync: boolean): string | null;
  /** Whether a frame repeated a configuration of the sample entry. */
  isRepeating(): boolean;
};

export type EncodableAudioCodec = AudioCodec & {
  /** ffmpeg's encoder, and the sample format that it takes. */
  encoder: string;
  sampleFormat: string;
  /** ffmpeg's output options. */
  encoderArguments(settings: AudioSettings): string[];
  /** The values of the encoding specification that the encoder supports, as valibot entries. */
  settings: Settings<"codec" | "profile" | "sample_rate">;
  /** Whether any device that plays the encoded audio also plays a track of this codec in a source unchanged. */
  isCopyable(track: SourceAudio): boolean;
  packetSamples: number;
  /** A packet that decodes to silence, for audio with this codec string; null where none is known. */
  silentPacket(codecString: string, channels: number): Buffer | null;
  /** Longest encoder delay in a source that a copy may have, in packets. */
  maxDelayPackets: number;
};

/** The limits of one rendition: bit/s, the decoder's buffer in bits, and the quality within them. */
export type BitrateLimits = { crf: number; maxBitrate: number; buffer: number };
/** What the encoders use of the encoding specification, and of the run. */
export type VideoSettings = {
  profile: string;
  preset: string;
  hdr?: HdrMetadata | undefined;
  /** The rendition continues after a part that another run encodes. */
  isContinued?: boolean;
};
export type AudioSettings = { bitrate: number; sample_rate: number; channels: number; coder: string };

/** What decides about a copy, by ffprobe's names; `level` is in the codec's own unit, `hdr` the format that is kept. */
export type SourceVideo = { profile: string; level: number; pixelFormat: string; hdr: HdrFormat | null };
export type SourceAudio = { profile: string; channels: number; sampleRate: number };

/** Throws Error when the content of a configuration box is shorter. */
export function requireBytes(configuration: Buffer, bytes: number, box: string): void {
  if (configuration.length < bytes) throw new Error(`The init segment's ${box} is truncated.`);
}

/** ffmpeg's output options for the highest bitrate and the decoder's buffer. */
export const bitrateCaps = ({ maxBitrate, buffer }: BitrateLimits): string[] => [
  ...["-maxrate", String(maxBitrate)],
  ...["-bufsize", String(buffer)],
];

/** The options of VAAPI's encoders for a quality within the caps: the average is the share of them that most content needs. */
export const vaapiQuality = (limits: BitrateLimits): string[] => [
  ...["-rc_mode", "QVBR", "-global_quality", String(limits.crf)],
  ...["-b:v", String(Math.round(limits.maxBitrate * 0.7)), ...bitrateCaps(limits)],
];

/** The presets that the encoders of H.264 and HEVC share. */
export const X26X_PRESETS = "ultrafast superfast veryfast faster fast medium slow slower veryslow".split(" ");
