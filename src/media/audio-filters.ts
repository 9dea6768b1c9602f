import { audioCodecs } from "#lib/codecs";
import type { EncodingSpec } from "./encoding-spec.ts";
import type { EncodePlan, Gain, PlannedAudio } from "./plan.ts";

/** Each encoded track ends in `[a<index>]`. */
export const audioGraph = (audio: EncodePlan["audio"], spec: EncodingSpec): string =>
  audio
    .flatMap((one, index) =>
      one.isCopied ? [] : `[0:${one.track.index}]${encodedSamples(one, spec).join(",")}[a${index}]`,
    )
    .join(";");

/** Filters whose output is what the encoder gets of a whole track. */
export const encodedSamples = (one: PlannedAudio, spec: EncodingSpec): string[] => [
  ...normalizedAudio(one, spec),
  ...(one.gain ? amplify(one.gain) : []),
  ...silenceUntil(one, spec),
  ...(spec.audio.length_seconds ? [`atrim=end=${spec.audio.length_seconds.toFixed(3)}`] : []),
];

/** The filter that fills the end of a track with silence, from its sample `first` on. */
export const silenceUntil = (
  { padToSeconds }: Pick<PlannedAudio, "padToSeconds">,
  { audio }: EncodingSpec,
  first = 0,
): string[] => {
  const samples = Math.round(padToSeconds * audio.sample_rate) - first;
  return padToSeconds > 0 && samples > 0 ? [`apad=whole_len=${samples}`] : [];
};

/** Filters that convert any audio to what the encoder takes for a rendition. */
export const normalizedAudio = (
  { surroundOf }: Pick<PlannedAudio, "surroundOf">,
  spec: EncodingSpec,
  { isFromStart = true } = {},
): string[] => [
  // Fills gaps with silence and first_pts a late start, which keeps audio and video in sync.
  `aresample=${spec.audio.sample_rate}:${SYNCED}${isFromStart ? ":first_pts=0" : ""}`,
  `aformat=sample_fmts=${audioCodecs[spec.audio.codec].sampleFormat}:channel_layouts=${channelLayout({ surroundOf })}`,
];

/** The channel layout of a rendition, by ffmpeg's name. */
export const channelLayout = ({ surroundOf }: Pick<PlannedAudio, "surroundOf">): string =>
  surroundOf === null ? "stereo" : "5.1";

/**
 * Options of `aresample`: samples are inserted or left out where their times differ by more than this many seconds from those
 * before. Below it are the times of live recordings, which vary by a packet or two; above it are lips out of sync.
 */
export const SYNCED = "async=1:min_hard_comp=0.06";

/** -1.5 dB: true peaks are up to half a decibel above the samples. */
const PEAK_LIMIT = 0.841;
/** Filters that apply a gain. */
export const amplify = ({ db, isLimited }: Gain): string[] => [
  `volume=${db.toFixed(2)}dB`,
  ...(isLimited ? [`alimiter=limit=${PEAK_LIMIT}:level=disabled`] : []),
];
