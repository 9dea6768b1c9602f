import { additionalVideoCodecs, PER_TITLE } from "#lib/codecs";
import { SURROUND_CHANNELS } from "#protocol/audio-renditions.ts";
import { EBU_R128_LUFS, type ProfileDefinition } from "#protocol/encoding-profile.ts";
import {
  type AdditionalVideo,
  type EncodingSpec,
  encodingSpec,
  type Rung,
  rung,
  VR_ORIGINAL,
} from "./encoding-spec.ts";

/** What only built-in profiles determine. */
type Effort = { preset: string; crf: number };
type BuiltIn = { definition: ProfileDefinition; effort?: Effort; original?: EncodingSpec["video"]["original"] };

const definition = (fields: Partial<ProfileDefinition>): ProfileDefinition => ({
  description: null,
  codecs: [encodingSpec.video.codec],
  ladder: null,
  max_height: null,
  per_title: false,
  hdr: "tone_map",
  audio: { bitrate: encodingSpec.audio.bitrate, channels: 2, loudness: "keep" },
  watermark: null,
  static_mp4: false,
  segment_seconds: 4,
  ...fields,
});

/** Profiles that exist on every server, and whose names are reserved. */
export const BUILT_IN_PROFILES = {
  default: { definition: definition({ description: "Seven rungs up to 2160p, a balance of speed and quality" }) },
  fast: {
    definition: definition({ description: "Up to 1080p, in less time and with more bits", max_height: 1080 }),
    effort: { preset: "superfast", crf: 23 },
  },
  quality: {
    definition: definition({ description: "Better quality, in about twice the time" }),
    effort: { preset: "medium", crf: 21 },
  },
  audio: { definition: definition({ description: "Audio only", ladder: [] }) },
  vr: {
    definition: definition({
      description:
        "Higher bitrates for large projections, the original where it can be copied, and an MP4 file, which VR players need",
      ladder: [
        { height: 2160, max_bitrate: 40_000_000 },
        { height: 1440, max_bitrate: 20_000_000 },
        { height: 1080, max_bitrate: 10_000_000 },
        { height: 720, max_bitrate: 4_500_000 },
      ],
      static_mp4: true,
    }),
    original: VR_ORIGINAL,
  },
} as const satisfies Record<string, BuiltIn>;
export type BuiltInName = keyof typeof BUILT_IN_PROFILES;

export const builtInOf = (name: string): BuiltIn | undefined =>
  Object.hasOwn(BUILT_IN_PROFILES, name) ? BUILT_IN_PROFILES[name as BuiltInName] : undefined;

/** A field whose value is impossible, or that this version cannot encode. */
export type ProfileFault = { field: string; reason: string };

/**
 * The effort of profiles whose rungs are chosen for each source. The preset at the knee of its curve (docs/encoding.md)
 * has the quality of `veryfast` at CRF 23 with about 20 % fewer bits, for some of the time that rungs which are left out would take.
 */
const PER_TITLE_EFFORT: Effort = { preset: "medium", crf: 26 };
const HDR_CODECS = additionalVideoCodecs.map(({ name }) => name).join(" or ");

/** Why a definition cannot be used; null when it can. */
export function faultOf(profile: ProfileDefinition): ProfileFault | null {
  const fault = (field: string, reason: string) => ({ field, reason });
  const { codec: primary } = encodingSpec.video;
  if (!profile.codecs.includes(primary))
    return fault("codecs", `must contain ${primary}: many players know no other codec`);
  if (profile.hdr === "keep" && profile.codecs.every((codec) => codec === primary))
    return fault("hdr", `must be tone_map without ${HDR_CODECS} in codecs: ${primary} is encoded in 8 bit only`);
  const { ladder, max_height: limit } = profile;
  if (ladder?.length === 0) {
    if (profile.codecs.length > 1) return fault("codecs", `must be only ${primary} in a profile without video`);
    if (profile.watermark) return fault("watermark", "must be null in a profile without video");
    if (profile.static_mp4) return fault("static_mp4", "must be false in a profile without video");
    if (profile.per_title) return fault("per_title", "must be false in a profile without video");
    if (limit !== null) return fault("max_height", "must be null in a profile without video");
    return null;
  }
  const rungs = (ladder ?? encodingSpec.video.ladder).toSorted((a, b) => b.height - a.height);
  for (const [index, { height, max_bitrate }] of rungs.entries()) {
    const above = rungs[index - 1];
    if (above?.height === height) return fault("ladder", `must have each height once, not ${height} twice`);
    if (above && above.max_bitrate <= max_bitrate)
      return fault("ladder", `must have a lower max_bitrate for ${height} than for ${above.height}`);
  }
  if (limit !== null && !rungs.some(({ height }) => height <= limit))
    return fault("max_height", "leaves no rung of the ladder");
  return null;
}

/**
 * Rungs of the same sizes, for each codec that is not the primary one. Workers of versions without HDR refuse the format,
 * instead of tone mapping.
 */
function additionalOf({ codecs, hdr }: ProfileDefinition, ladder: readonly Rung[]): AdditionalVideo[] {
  return additionalVideoCodecs
    .filter(({ name }) => codecs.includes(name))
    .map(({ defaults: { settings, crf, bitrateShare }, hdrFormat }) => ({
      ...settings,
      ...(hdr === "keep" && hdrFormat),
      ladder: ladder.map((one) => ({
        ...one,
        max_bitrate: Math.round(one.max_bitrate * bitrateShare),
        buffer: Math.round(one.buffer * bitrateShare),
        crf,
      })),
    }));
}

/** 5.1 has five channels of the full range instead of two, and one of low frequencies, which takes next to nothing. */
const SURROUND_BITRATE_FACTOR = 2.5;

const lufsOf = ({ audio: { loudness } }: ProfileDefinition): number | null => {
  if (typeof loudness === "object") return loudness.target_lufs;
  return loudness === "ebu_r128" ? EBU_R128_LUFS : null;
};

/**
 * The specification that workers obey, of a definition without a fault. `watermark` is the image of a profile with a
 * watermark; its URL is set when the specification is sent.
 */
export function specOf(
  profile: ProfileDefinition,
  watermark: string | null,
  builtIn?: Pick<BuiltIn, "effort" | "original">,
): EncodingSpec {
  const { video, audio } = encodingSpec;
  const effort = profile.per_title ? PER_TITLE_EFFORT : builtIn?.effort;
  const isAudioOnly = profile.ladder?.length === 0;
  const own = profile.ladder?.map(({ height, max_bitrate }) => rung(height, max_bitrate));
  const rungs: readonly Rung[] = isAudioOnly || !own ? video.ladder : own;
  const ladder = rungs
    .filter(({ height }) => height <= (profile.max_height ?? Number.POSITIVE_INFINITY))
    .map((one) => ({ ...one, crf: effort?.crf ?? one.crf }))
    .toSorted((a, b) => b.height - a.height);
  return {
    ...encodingSpec,
    video: {
      ...video,
      ...(profile.per_title && { rate_control: PER_TITLE }),
      preset: effort?.preset ?? video.preset,
      ladder,
      enabled: !isAudioOnly,
      ...(profile.codecs.length > 1 && { additional: additionalOf(profile, ladder) }),
      ...(builtIn?.original && { original: builtIn.original }),
      watermark:
        profile.watermark && watermark ? { ...profile.watermark, image: { url: "", sha256: watermark } } : null,
    },
    audio: {
      ...audio,
      bitrate: profile.audio.bitrate,
      // Workers of versions without 5.1 refuse the number of channels, instead of encoding stereo only.
      ...(profile.audio.channels === SURROUND_CHANNELS && {
        channels: SURROUND_CHANNELS,
        surround_bitrate: Math.round(profile.audio.bitrate * SURROUND_BITRATE_FACTOR),
      }),
      // Who asks for another bitrate does not want the source's.
      ...(profile.audio.bitrate !== audio.bitrate && { max_copied_bitrate: Math.round(profile.audio.bitrate * 1.1) }),
      loudness_lufs: lufsOf(profile),
    },
    static_mp4: { ...encodingSpec.static_mp4, enabled: profile.static_mp4 },
  };
}
