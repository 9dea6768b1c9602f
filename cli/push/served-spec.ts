import { createHash } from "node:crypto";
import * as v from "valibot";
import { UserError } from "../../src/lib/errors.ts";
import type { EncodingSpec } from "../../src/media/encoding-spec.ts";
import type { Api } from "./http.ts";

// What it says becomes arguments and names of files here, and a server need not be a friend's.
const whole = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max));
const seconds = v.pipe(v.number(), v.minValue(0.5), v.maxValue(60));
const bits = whole(1000, 1_000_000_000);
const side = whole(16, 16_384);
const fileName = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/));

const Rung = v.object({
  name: fileName,
  width: side,
  height: side,
  max_bitrate: bits,
  buffer: bits,
  crf: v.pipe(v.number(), v.minValue(0), v.maxValue(51)),
  only_below: v.optional(side),
});

/** What this client can do is written out; what it is told is bounded. */
const ServedSpec = v.object({
  version: v.literal(1),
  container: v.literal("cmaf"),
  segment_seconds: seconds,
  gop_seconds: seconds,
  video: v.object({
    codec: v.literal("h264"),
    profile: v.literal("high"),
    pixel_format: v.literal("yuv420p"),
    rate_control: v.literal("crf_capped"),
    preset: v.picklist(
      "ultrafast superfast veryfast faster fast medium slow slower veryslow".split(" ") as [string, ...string[]],
    ),
    standard_frame_rate: whole(1, 240),
    max_frame_rate: whole(1, 240),
    high_frame_rate_factor: v.pipe(v.number(), v.minValue(1), v.maxValue(10)),
    ladder: v.pipe(v.array(Rung), v.minLength(1), v.maxLength(20)),
    max_pixels: whole(256, 8192 * 8192),
  }),
  audio: v.object({
    codec: v.literal("aac"),
    profile: v.literal("lc"),
    bitrate: whole(8000, 1_000_000),
    sample_rate: v.picklist([44_100, 48_000]),
    channels: v.literal(2),
    group: fileName,
    max_tracks: whole(0, 32),
    // Servers of before did not say.
    coder: v.optional(v.picklist(["fast", "twoloop"]), "fast"),
    max_copied_bitrate: v.optional(whole(0, 1_000_000), 330_000),
  }),
  hls: v.object({
    version: whole(7, 12),
    manifest: fileName,
    playlist: fileName,
    iframe_playlist: fileName,
    independent_segments: v.literal(true),
  }),
  dash: v.object({
    manifest: fileName,
    profile: v.literal("urn:mpeg:dash:profile:isoff-live:2011"),
  }),
  thumbnail: v.object({ name: fileName, format: v.literal("jpeg"), max_short_side: side }),
  storyboard: v.object({
    enabled: v.boolean(),
    name: fileName,
    image: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{0,50}\$Number\$[A-Za-z0-9._-]{1,20}$/)),
    format: v.literal("jpeg"),
    columns: whole(1, 100),
    max_tiles: whole(1, 1000),
    tile_short_side: whole(16, 1080),
  }),
  static_mp4: v.object({ name: fileName, max_short_side: side, fast_start: v.boolean() }),
  captions: v.object({ format: v.literal("webvtt") }),
  rules: v.object({ never_upscale: v.literal(true), passthrough_when_compatible: v.literal(true) }),
});

/** What the server wants made, and a name of just this. Throws a UserError for what this client can't make. */
export async function servedSpec(call: Api): Promise<{ spec: EncodingSpec; name: string }> {
  const served = await call<unknown>("GET", "/encoding_spec");
  const parsed = v.safeParse(ServedSpec, served, { abortEarly: true });
  if (!parsed.success) {
    const [issue] = parsed.issues;
    const place = v.getDotPath(issue) ?? "its form";
    const said = JSON.stringify(issue.input)?.slice(0, 40) ?? "nothing";
    throw new UserError(
      `The server's encoding specification says ${said} for ${place}, which this vodbox cannot make. Use the server's version of vodbox, or push without --encode and let the server encode.`,
    );
  }
  const name = createHash("sha256").update(JSON.stringify(parsed.output)).digest("hex");
  return { spec: parsed.output, name };
}
