import * as v from "valibot";
import { additionalVideoCodecs, encodableAudioCodecs, primaryVideoCodecs } from "#lib/codecs";
import { ISOFF_LIVE_PROFILE } from "#lib/manifests";
import { isAudioName, STEREO_CHANNELS, SURROUND_CHANNELS } from "./audio-renditions.ts";
import { WATERMARK_POSITIONS } from "./encoding-profile.ts";
import { describedAs } from "./fields.ts";
import { HeightField, NameField, SourceHeight, SourceWidth, WidthField } from "./record-fields.ts";

// A desktop client uses these values as arguments and file names, and the server may not be trustworthy.
const between = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max));
const seconds = v.pipe(v.number(), v.minValue(0.5), v.maxValue(60));
const bits = between(1000, 1_000_000_000);
const side = between(16, 16_384);
/** A side of a source as it is shown: less than any rendition, or more, because of pixels that are not square. */
const sourceSide = between(1, 10_000_000);
const videoCodecNames = [...primaryVideoCodecs, ...additionalVideoCodecs].map(({ name }) => name);
const fileName = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/));

/** One rung of the ladder. Sizes are those of a 16:9 video; other aspect ratios keep `height` as their short side. */
const rung = (maxCrf: number) =>
  v.object({
    name: fileName,
    width: side,
    height: side,
    /** Maximum bitrate and decoder buffer, in bit/s and bits, at up to `standard_frame_rate` frames per second. */
    max_bitrate: bits,
    buffer: bits,
    crf: v.pipe(v.number(), v.minValue(0), v.maxValue(maxCrf)),
    /** The rung is used only for sources whose short side is below this. */
    only_below: v.optional(side),
  });

/**
 * Directories of renditions: none is that of audio or of another codec, and a size between two rungs is named by its
 * short side.
 */
const hasOwnNames = (ladder: { name: string; height: number }[]) =>
  new Set(ladder.map(({ name }) => name)).size === ladder.length &&
  ladder.every(({ name, height }) => !isReserved(name) || name === `${height}p`);
const isReserved = (name: string) =>
  isAudioName(name) || /^\d+p$/.test(name) || additionalVideoCodecs.some((codec) => name.endsWith(`-${codec.name}`));

const ladder = (maxCrf: number) =>
  v.pipe(
    v.array(rung(maxCrf)),
    v.minLength(1),
    v.maxLength(20),
    v.check((all) => hasOwnNames(all)),
  );

/** A PNG image over the video, which the worker downloads; `width_percent` is of the width of the video. */
const watermark = v.object({
  position: v.picklist(WATERMARK_POSITIONS),
  opacity: v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
  width_percent: v.pipe(v.number(), v.minValue(1), v.maxValue(100)),
  image: v.object({
    url: v.pipe(v.string(), v.maxLength(4000)),
    sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  }),
});

/**
 * Renditions of another codec, which are named `<rung>-<codec>`. With a pixel format of 10 bit, they keep the HDR of a
 * source; those of SDR have 8 bit and the profile for that in any case.
 */
const additional = v.variant(
  "codec",
  additionalVideoCodecs.map(({ settings, maxCrf }) => v.object({ ...settings, ladder: ladder(maxCrf) })),
);

/**
 * What was chosen for one source by `rate_control: "per_title"`: its renditions, largest first. It is for no source of another
 * display size.
 */
export const Title = v.object({
  source_width: describedAs(SourceWidth, sourceSide),
  source_height: describedAs(SourceHeight, sourceSide),
  rungs: v.pipe(
    v.array(
      v.object({
        // Sizes of the ladder, of which one may be used more than once: `720p` and `720p-2`.
        name: describedAs(NameField, v.pipe(v.string(), v.regex(/^\d{1,5}p(-\d{1,2})?$/))),
        width: describedAs(WidthField, side),
        height: describedAs(HeightField, side),
        max_bitrate: v.pipe(bits, v.description("bit/s, at the frame rate of the source")),
        buffer: v.pipe(bits, v.description("Of the decoder, in bits")),
        crf: v.pipe(v.number(), v.minValue(0), v.maxValue(51), v.description("Constant rate factor of the encoder")),
        score: v.pipe(v.number(), v.minValue(0), v.maxValue(100), v.description("Estimated quality, 0 to 100")),
      }),
    ),
    v.minLength(1),
    v.maxLength(20),
    v.check((rungs) => new Set(rungs.map(({ name }) => name)).size === rungs.length),
    v.description("The renditions, largest first"),
  ),
});
export type Title = v.InferOutput<typeof Title>;

/**
 * Sources in these codecs have their video copied in its own size, next to the ladder. It may be larger than the
 * ladder. Their caps are those of the ladder by the area, up to `max_bitrate` (bit/s).
 */
const original = v.object({
  codecs: v.pipe(v.array(v.picklist(videoCodecNames)), v.minLength(1), v.maxLength(videoCodecNames.length)),
  max_side: side,
  max_pixels: between(256, 8192 * 8192),
  max_bitrate: bits,
});

const videoOf = ({ settings, maxCrf }: (typeof primaryVideoCodecs)[number]) =>
  v.object({
    ...settings,
    standard_frame_rate: between(1, 240),
    max_frame_rate: between(1, 240),
    high_frame_rate_factor: v.pipe(v.number(), v.minValue(1), v.maxValue(10)),
    ladder: ladder(maxCrf),
    max_pixels: between(256, 8192 * 8192),
    // Older servers do not state these.
    enabled: v.optional(v.boolean(), true),
    watermark: v.optional(v.nullable(watermark), null),
    /** With `rate_control: "per_title"`, once the source was analyzed. */
    title: v.optional(Title),
    additional: v.optional(
      v.pipe(
        v.array(additional),
        v.maxLength(additionalVideoCodecs.length),
        v.check((all) => new Set(all.map(({ codec }) => codec)).size === all.length),
      ),
    ),
    // Workers of versions without it encode the ladder only.
    original: v.optional(original),
  });

// The order determines the specification's identifier.
const audioOf = ({ settings: { codec, profile, sample_rate, ...others } }: (typeof encodableAudioCodecs)[number]) =>
  v.pipe(
    v.object({
      codec,
      profile,
      bitrate: between(8000, 1_000_000),
      sample_rate,
      /** The most channels of a rendition. 6: tracks with as many also have a 5.1 rendition, next to the stereo one. */
      channels: v.picklist([STEREO_CHANNELS, SURROUND_CHANNELS]),
      group: fileName,
      max_tracks: between(0, 32),
      ...others,
      // Older servers did not state it.
      max_copied_bitrate: v.optional(between(0, 1_000_000), 330_000),
      loudness_lufs: v.optional(v.nullable(v.pipe(v.number(), v.minValue(-70), v.maxValue(0))), null),
      /** Seconds that each track lasts: a shorter one ends in silence, a longer one is cut. Null: as long as the source. */
      length_seconds: v.optional(v.nullable(v.pipe(v.number(), v.minValue(0.1), v.maxValue(100_000)))),
      /** Seconds that are added to all times of segments: of audio next to media that do not begin at 0. */
      start_seconds: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1e9))),
      /** bit/s of 5.1 renditions. */
      surround_bitrate: v.optional(between(8000, 1_700_000)),
    }),
    v.check(({ channels, surround_bitrate }) => channels === STEREO_CHANNELS || surround_bitrate !== undefined),
  );

/**
 * The encoding of a source, as `GET /encoding_spec` returns it. Supported values are listed, and numbers are bounded. The
 * server's own values are in src/media/encoding-spec.ts; another server may use others.
 */
export const EncodingSpec = v.object({
  version: v.literal(1),
  container: v.literal("cmaf"),
  segment_seconds: seconds,
  gop_seconds: seconds,
  video: v.variant("codec", primaryVideoCodecs.map(videoOf)),
  audio: v.variant("codec", encodableAudioCodecs.map(audioOf)),
  hls: v.object({
    version: between(7, 12),
    manifest: fileName,
    playlist: fileName,
    iframe_playlist: fileName,
    independent_segments: v.literal(true),
  }),
  dash: v.object({
    manifest: fileName,
    profile: v.literal(ISOFF_LIVE_PROFILE),
  }),
  thumbnail: v.object({ name: fileName, format: v.literal("jpeg"), max_short_side: side }),
  storyboard: v.object({
    enabled: v.boolean(),
    name: fileName,
    image: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{0,50}\$Number\$[A-Za-z0-9._-]{1,20}$/)),
    format: v.literal("jpeg"),
    columns: between(1, 100),
    max_tiles: between(1, 1000),
    tile_short_side: between(16, 1080),
  }),
  static_mp4: v.object({
    // Older servers state it by `outputs.mp4_path` alone.
    enabled: v.optional(v.boolean(), false),
    name: fileName,
    max_short_side: side,
    fast_start: v.boolean(),
  }),
  captions: v.object({ format: v.literal("webvtt") }),
  rules: v.object({ never_upscale: v.literal(true), passthrough_when_compatible: v.literal(true) }),
});
export type EncodingSpec = DeepReadonly<v.InferOutput<typeof EncodingSpec>>;
export type Rung = EncodingSpec["video"]["ladder"][number];
export type AdditionalVideo = NonNullable<EncodingSpec["video"]["additional"]>[number];
type DeepReadonly<T> = T extends object ? { readonly [Name in keyof T]: DeepReadonly<T[Name]> } : T;
