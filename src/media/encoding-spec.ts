import { aac, h264, hevc } from "#lib/codecs";
import { ISOFF_LIVE_PROFILE } from "#lib/manifests";
import type { AdditionalVideo, EncodingSpec, Rung } from "#protocol/encoding-spec.ts";

export type { AdditionalVideo, EncodingSpec, Rung };

/** A rung of 16:9; `maxBitrate` in bit/s. */
export const rung = (height: number, maxBitrate: number, rest: Partial<Rung> = {}): Rung => ({
  name: `${height}p`,
  width: Math.round((height * 16) / 9 / 2) * 2,
  height,
  max_bitrate: maxBitrate,
  // A buffer of 1.5 s keeps a 4 s segment under 1.4 times the cap, and still keeps the quality of a cut to a busy
  // scene.
  buffer: maxBitrate * 1.5,
  crf: 23,
  ...rest,
});

/**
 * The encoding of a source, defined once: `GET /encoding_spec` returns it, the worker follows it, and desktop clients
 * that encode themselves can too.
 */
export const encodingSpec: EncodingSpec = {
  version: 1,
  container: "cmaf",
  segment_seconds: 4,
  gop_seconds: 2,
  video: {
    codec: h264.name,
    profile: "high",
    pixel_format: "yuv420p",
    rate_control: "crf_capped",
    // Measured at 1080p: superfast needs 1.2 times the bits for a lower VMAF; faster takes 1.5 times the time for +0.4.
    preset: "veryfast",
    standard_frame_rate: 30,
    max_frame_rate: 60,
    /** Caps are multiplied by this above `standard_frame_rate`. */
    high_frame_rate_factor: 1.5,
    ladder: [
      rung(2160, 18_000_000),
      rung(1440, 10_000_000),
      rung(1080, 6_000_000),
      rung(720, 3_200_000),
      rung(480, 1_500_000),
      rung(360, 900_000),
      rung(240, 450_000, { only_below: 480 }),
    ],
    max_pixels: h264.maxPixels,
    /** False: audio only. */
    enabled: true,
    watermark: null,
  },
  audio: {
    codec: aac.name,
    profile: "lc",
    /** ffmpeg's AAC encoder: at this bitrate it takes half the time of the other one and is closer to the source. */
    coder: "fast",
    bitrate: 128_000,
    sample_rate: 48_000,
    channels: 2,
    group: "audio",
    max_tracks: 8,
    /** bit/s of a source's audio track, above which it is re-encoded. */
    max_copied_bitrate: 330_000,
    /** Integrated loudness (EBU R 128) that audio is normalized to; null: that of the source. */
    loudness_lufs: null,
  },
  hls: {
    version: 7,
    manifest: "master.m3u8",
    playlist: "playlist.m3u8",
    /** The first frame of each segment, for trick play. */
    iframe_playlist: "iframes.m3u8",
    independent_segments: true,
  },
  dash: { manifest: "manifest.mpd", profile: ISOFF_LIVE_PROFILE },
  thumbnail: { name: "thumbnail.jpg", format: "jpeg", max_short_side: 720 },
  /** One sheet of thumbnails: their interval is a keyframe interval, or longer when they would be too many. */
  storyboard: {
    enabled: true,
    name: "storyboard.vtt",
    image: "storyboard-$Number$.jpg",
    format: "jpeg",
    columns: 10,
    max_tiles: 100,
    tile_short_side: 90,
  },
  /** Optional: one MP4 file of the best rendition within the limit. */
  static_mp4: { enabled: false, name: "video.mp4", max_short_side: 1080, fast_start: true },
  captions: { format: "webvtt" },
  rules: { never_upscale: true, passthrough_when_compatible: true },
};

/** What headsets decode and networks at home carry. Encoding HEVC of this size would take hours, so it is only copied. */
export const VR_ORIGINAL = {
  codecs: [h264.name, hevc.name],
  max_side: 8192,
  max_pixels: 8192 * 4096,
  max_bitrate: 100_000_000,
} satisfies EncodingSpec["video"]["original"];
