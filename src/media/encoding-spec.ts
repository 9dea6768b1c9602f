/** One step of the ladder. Sizes are those of a 16:9 picture; other shapes keep `height` as their short side. */
export type Rung = {
  name: string;
  width: number;
  height: number;
  /** Cap and decoder buffer, in bit/s and bits, at up to `standard_frame_rate` frames per second. */
  max_bitrate: number;
  buffer: number;
  crf: number;
  /** The step is taken only from sources whose short side is below this. */
  only_below?: number;
};

const rung = (height: number, maxBitrate: number, rest: Partial<Rung> = {}): Rung => ({
  name: `${height}p`,
  width: Math.round((height * 16) / 9 / 2) * 2,
  height,
  max_bitrate: maxBitrate,
  // A buffer of 1.5 s keeps a 4 s segment under 1.4 times the cap and still lets a cut to a busy scene look good.
  buffer: maxBitrate * 1.5,
  crf: 23,
  ...rest,
});

/**
 * The one definition of what is made from a source: `GET /encoding_spec` answers it, the worker obeys it, and a
 * desktop client that encodes by itself can follow it.
 */
export const encodingSpec = {
  version: 1,
  container: "cmaf",
  segment_seconds: 4,
  gop_seconds: 2,
  video: {
    codec: "h264",
    profile: "high",
    pixel_format: "yuv420p",
    rate_control: "crf_capped",
    // Measured at 1080p: superfast needs 1.2 times the bits for a lower VMAF; faster costs 1.5 times the time for +0.4.
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
    ] as readonly Rung[],
    /** H.264 level 5.1 and 5.2 hold this many pixels (A.3.1: MaxFS 36,864 macroblocks). */
    max_pixels: 36_864 * 256,
  },
  audio: {
    codec: "aac",
    profile: "lc",
    /** ffmpeg's: at this rate it takes half the time of the other one and is nearer to the source. */
    coder: "fast",
    bitrate: 128_000,
    sample_rate: 48_000,
    channels: 2,
    group: "audio",
    max_tracks: 8,
    /** bit/s of a source's own track, above which it is encoded anew. */
    max_copied_bitrate: 330_000,
  },
  hls: {
    version: 7,
    manifest: "master.m3u8",
    playlist: "playlist.m3u8",
    /** Each segment's first picture alone, for trick play. */
    iframe_playlist: "iframes.m3u8",
    independent_segments: true,
  },
  dash: { manifest: "manifest.mpd", profile: "urn:mpeg:dash:profile:isoff-live:2011" },
  thumbnail: { name: "thumbnail.jpg", format: "jpeg", max_short_side: 720 },
  /** One sheet of small pictures: from one to the next it is a key frame's time, or more where they would be too many. */
  storyboard: {
    enabled: true,
    name: "storyboard.vtt",
    image: "storyboard-$Number$.jpg",
    format: "jpeg",
    columns: 10,
    max_tiles: 100,
    tile_short_side: 90,
  },
  /** Made where the operator wants it: one file of the best rendition within the limit. */
  static_mp4: { name: "video.mp4", max_short_side: 1080, fast_start: true },
  captions: { format: "webvtt" },
  rules: { never_upscale: true, passthrough_when_compatible: true },
} as const;

/** Its shape alone: another server's may say other numbers. */
export type EncodingSpec = Shape<typeof encodingSpec>;
type Shape<T> = T extends number
  ? number
  : T extends string
    ? string
    : T extends boolean
      ? boolean
      : { readonly [K in keyof T]: Shape<T[K]> };
