export { aac } from "./aac.ts";
export {
  AUDIO_HEADER_BYTES,
  type AudioFrameHeader,
  type ReadAudioHeader,
  readAc3Header,
  readMpegAudioHeader,
} from "./audio-frames.ts";
export { BitReader, withoutEmulationPrevention } from "./bits.ts";
export { type BitrateLimits, PER_TITLE, type VideoCodec } from "./codec.ts";
export { type AudioFormat, reading, type VideoFormat } from "./configurations/format.ts";
export { readH264 } from "./configurations/h264.ts";
export { readAudioFormat, readVideoFormat } from "./configurations/read-format.ts";
export { deviceArguments, type Encoder, type Encoders, encoderFor, usesDevices } from "./encoders.ts";
export { h264 } from "./h264.ts";
export { hasAudioCodec } from "./has-audio-codec.ts";
export {
  CHROMATICITY_UNITS,
  type Chromaticity,
  type CicpColors,
  type ContentLight,
  HDR_FORMATS,
  HDR_SIGNALS,
  type HdrFormat,
  type HdrMetadata,
  hdrOfCicp,
  hdrOfTransfer,
  hdrOfVideoRange,
  LUMINANCE_UNITS,
  type MasteringDisplay,
  NO_HDR_METADATA,
} from "./hdr.ts";
export { hevc } from "./hevc.ts";
export { OPUS_RATE, opusSamples } from "./opus.ts";
export { type Rate, reducedRate } from "./rate.ts";
export {
  additionalVideoCodecs,
  audioCodecs,
  codecNameOf,
  codecOfSampleEntry,
  encodableAudioCodecs,
  primaryVideoCodecs,
  videoCodecs,
} from "./registry.ts";
export { isSameConfig } from "./same-config.ts";
export type {
  ConvertibleAudio,
  ConvertibleCodec,
  LiveSample,
  LiveVideoCodec,
  StreamEnd,
  TrackConfig,
} from "./samples.ts";
export {
  BOUND_UNITS,
  type Bounds,
  NO_BOUNDS,
  type SphericalMetadata,
  type SphericalProjection,
  STEREO_MODES,
  type StereoMode,
  VR_PROJECTIONS,
  VR_STEREO,
  type VrTags,
  vrTagsOf,
} from "./spherical.ts";
