import * as v from "valibot";
import { additionalVideoCodecs, primaryVideoCodecs } from "#lib/codecs";
import { STEREO_CHANNELS, SURROUND_CHANNELS } from "./audio-renditions.ts";
import { describedAs } from "./fields.ts";
import { DescriptionField, PositionField } from "./record-fields.ts";

/**
 * Encoding profiles, as clients write them. A profile is compiled to an encoding specification, which workers obey
 * (src/media/encoding-profiles.ts).
 */

const between = (min: number, max: number, what = "") =>
  v.pipe(
    v.number("must be a number"),
    v.integer("must be a whole number"),
    v.minValue(min, `must be at least ${min}${what}`),
    v.maxValue(max, `must be at most ${max}${what}`),
  );
/** Misspelled fields of a value are refused, because the default would replace them. */
const fields = <const T extends v.ObjectEntries>(entries: T) =>
  v.strictObject(entries, ({ expected }) =>
    expected === "never" ? `is unknown; the fields are ${Object.keys(entries).join(", ")}` : "must be an object",
  );
const choice = <const T extends readonly [string, ...string[]]>(values: T) =>
  v.picklist(values, `must be one of ${values.join(", ")}`);

export const PROFILE_NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
export const ProfileName = v.pipe(
  v.string("must be a string"),
  v.maxLength(100, "must have at most 100 characters"),
  v.regex(PROFILE_NAME, "must be lower-case letters and digits, in groups joined by single hyphens"),
);

const PRIMARY_CODECS = primaryVideoCodecs.map(({ name }) => name);
const ADDITIONAL_CODECS = additionalVideoCodecs.map(({ name }) => name);
type VideoCodecName = (typeof PRIMARY_CODECS | typeof ADDITIONAL_CODECS)[number];
const PROFILE_CODECS = [...PRIMARY_CODECS, ...ADDITIONAL_CODECS] as [VideoCodecName, ...VideoCodecName[]];
const DEFAULT_CODECS: VideoCodecName[] = PRIMARY_CODECS.slice(0, 1);
export const WATERMARK_POSITIONS = ["top-left", "top-right", "bottom-left", "bottom-right", "center"] as const;
/** EBU R 128, clause a: the target of programme loudness. */
export const EBU_R128_LUFS = -23;

const ProfileRung = fields({
  height: v.pipe(
    between(96, 4320),
    v.check((height) => height % 2 === 0, "must be even"),
    v.description("Short side in pixels"),
  ),
  max_bitrate: v.pipe(
    between(50_000, 200_000_000),
    v.description(`bit/s of ${PRIMARY_CODECS[0]}, at up to 30 frames per second; a part of it for other codecs`),
  ),
});

const Loudness = v.union(
  [
    v.picklist(["keep", "ebu_r128"]),
    fields({
      target_lufs: v.pipe(
        v.number("must be a number"),
        v.minValue(-30, "must be at least -30"),
        v.maxValue(-10, "must be at most -10"),
        v.description("Integrated loudness"),
      ),
    }),
  ],
  "must be keep, ebu_r128 or {target_lufs}",
);

const ProfileAudio = fields({
  bitrate: v.pipe(v.optional(between(32_000, 512_000), 128_000), v.description("bit/s of stereo")),
  channels: v.pipe(
    v.optional(v.picklist([STEREO_CHANNELS, SURROUND_CHANNELS], "must be 2 or 6"), STEREO_CHANNELS),
    v.description("6: tracks of six or more channels are also encoded in 5.1; every track is encoded in stereo"),
  ),
  loudness: v.pipe(
    v.optional(Loudness, "keep"),
    v.description("`ebu_r128`: normalized to -23 LUFS; `target_lufs`: to another value"),
  ),
});

export const ProfileWatermark = fields({
  position: describedAs(PositionField, v.optional(choice(WATERMARK_POSITIONS), "bottom-right")),
  opacity: v.pipe(
    v.optional(
      v.pipe(v.number("must be a number"), v.minValue(0, "must be at least 0"), v.maxValue(1, "must be at most 1")),
      1,
    ),
    v.description("0 (invisible) to 1"),
  ),
  width_percent: v.pipe(
    v.optional(
      v.pipe(v.number("must be a number"), v.minValue(1, "must be at least 1"), v.maxValue(100, "must be at most 100")),
      15,
    ),
    v.description("Of the width of the video"),
  ),
});

/** The fields of a profile that determine the encoding. */
export const profileEntries = {
  description: describedAs(
    DescriptionField,
    v.optional(v.nullable(v.pipe(v.string("must be a string"), v.maxLength(500))), null),
  ),
  codecs: v.pipe(
    v.optional(
      v.pipe(
        v.array(choice(PROFILE_CODECS), "must be an array of codecs"),
        v.minLength(1, "must name at least one codec"),
        v.check((codecs) => new Set(codecs).size === codecs.length, "must name each codec once"),
      ),
      DEFAULT_CODECS,
    ),
    v.description(
      `Always with ${PRIMARY_CODECS[0]}, which every player knows; ${ADDITIONAL_CODECS.join(" and ")} are additional renditions of all sizes, and take several times as long`,
    ),
  ),
  ladder: v.pipe(
    v.optional(
      v.nullable(
        v.pipe(v.array(ProfileRung, "must be an array of rungs"), v.maxLength(20, "must have at most 20 rungs")),
      ),
      null,
    ),
    v.description("Rungs of the ladder, in any order; null: those of the profile `default`; empty: audio only"),
  ),
  max_height: v.pipe(
    v.optional(v.nullable(between(96, 4320)), null),
    v.description("Rungs with a longer short side are left out"),
  ),
  per_title: v.pipe(
    v.optional(v.boolean("must be true or false"), false),
    v.description(
      "Whether the rungs are chosen for each source from trial encodes, within the ladder: fewer bits, in more time",
    ),
  ),
  hdr: v.pipe(
    v.optional(choice(["tone_map", "keep"]), "tone_map"),
    v.description(
      `What becomes of HDR (PQ and HLG): \`tone_map\`: SDR in all codecs; \`keep\`: HDR in 10 bit in ${ADDITIONAL_CODECS.join(" and ")}, of which one must be in \`codecs\`, and SDR in ${PRIMARY_CODECS[0]}. SDR stays as it is`,
    ),
  ),
  audio: v.pipe(
    v.optional(ProfileAudio, { bitrate: 128_000, channels: 2, loudness: "keep" }),
    v.description("What is produced of audio"),
  ),
  watermark: v.pipe(
    v.optional(v.nullable(ProfileWatermark), null),
    v.description("A PNG image over the video; set the image with PUT …/watermark"),
  ),
  static_mp4: v.pipe(
    v.optional(v.boolean("must be true or false"), false),
    v.description("Whether to write one MP4 file too"),
  ),
  segment_seconds: v.pipe(v.optional(v.literal(4, "must be 4"), 4), v.description("Length of segments; only 4")),
};

/** With all defaults filled in. */
export const ProfileDefinition = v.object(profileEntries);
export type ProfileDefinition = v.InferOutput<typeof ProfileDefinition>;
