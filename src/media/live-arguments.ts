import { videoCodecs } from "#lib/codecs";
import { MAX_PIXELS } from "./arguments.ts";
import { encodingSpec } from "./encoding-spec.ts";
import { UNTRUSTED_INPUT } from "./ffmpeg.ts";
import type { PlannedRendition } from "./ladder.ts";

/** The built-in specification's, whatever the profile: a slower preset might not keep up with the stream. */
const { preset, profile, pixel_format } = encodingSpec.video;
/** The timescale of the publisher's video (src/live/cmaf), so that times are exactly the same. */
const TIMESCALE = 120_000;
/** In microseconds: about a frame. The receiver makes parts of them. */
const FRAGMENT_US = 30_000;
/** The output has keyframes only where the source has them. */
const MAX_GOP = 1_000_000;

type SizedRendition = Pick<PlannedRendition, "width" | "height" | "maxBitrate" | "buffer" | "crf">;

/**
 * Arguments of the run that encodes the renditions of a live stream, largest first, from `pipe:0` to `pipe:1`: decoded once,
 * each size scaled from the one above it. Keyframes and times stay as in the source, so segments of all renditions begin
 * with the same frame. Without B-frames, decode times are presentation times, and there is no delay to remove.
 */
export function liveArguments(renditions: readonly SizedRendition[]): string[] {
  return [
    ...["-nostdin", "-hide_banner", "-loglevel", "warning", "-copyts", "-max_pixels", String(MAX_PIXELS)],
    ...[...UNTRUSTED_INPUT, "-f", "mov", "-i", "pipe:0"],
    ...["-filter_complex", graphOf(renditions)],
    ...renditions.flatMap((one, index) => ["-map", `[v${index}]`, ...encoderOf(one, index)]),
    ...["-g", String(MAX_GOP), "-force_key_frames", "source", "-fps_mode", "passthrough", "-enc_time_base", "-1"],
    ...["-map_metadata", "-1", "-video_track_timescale", String(TIMESCALE), "-avoid_negative_ts", "disabled"],
    ...["-use_editlist", "0", "-movflags", "+empty_moov+default_base_moof+frag_discont"],
    ...["-frag_duration", String(FRAGMENT_US), "-flush_packets", "1", "-f", "mp4", "pipe:1"],
  ];
}

function graphOf(renditions: readonly SizedRendition[]): string {
  const last = renditions.length - 1;
  return renditions
    .map(({ width, height }, index) => {
      const from = index === 0 ? "[0:v:0]" : `[s${index}]`;
      const scaled = `${from}scale=${width}:${height}:flags=bicubic,setsar=1,format=${pixel_format}`;
      return index === last ? `${scaled}[v${index}]` : `${scaled},split=2[v${index}][s${index + 1}]`;
    })
    .join(";");
}

/**
 * Options of an encoder, for the video stream `index` of the output: options without a stream would apply to all, and the
 * codec is set for all video streams (`-c:v`).
 */
function encoderOf(one: SizedRendition, index: number): string[] {
  const codec = videoCodecs[encodingSpec.video.codec];
  const args = codec.encoderArguments.software(one, { preset, profile });
  return [...args, "-bf", "0"].map((arg, at) => (at % 2 === 0 ? `${arg.replace(/:v$/, "")}:v:${index}` : arg));
}
