/** Writes HLS playlists (RFC 8216), independent of storage and HTTP. */

export type PlaylistSegment = {
  uri: string;
  durationSeconds: number;
  /** The byte range in the file. */
  range?: { offset: number; bytes: number };
};

/**
 * A complete media playlist of fMP4 segments; or of single frames for trick play (4.3.3.6), each with its fragment
 * header.
 * @example
 * const segments = [{ uri: "1.m4s", durationSeconds: 4 }];
 * mediaPlaylist({ version: 7, initUri: "init.mp4", segments, targetDurationSeconds: 4 }).includes("#EXTINF:4.000000,\n1.m4s") // => true
 */
export function mediaPlaylist(options: {
  version: number;
  initUri: string;
  segments: readonly PlaylistSegment[];
  targetDurationSeconds: number;
  isIFramesOnly?: boolean;
  /** Each segment begins with a keyframe; the default. */
  isIndependent?: boolean;
}): string {
  const lines = [
    "#EXTM3U",
    `#EXT-X-VERSION:${options.version}`,
    // 4.3.3.1: every EXTINF, rounded to the nearest integer, is at most this.
    `#EXT-X-TARGETDURATION:${options.targetDurationSeconds}`,
    "#EXT-X-MEDIA-SEQUENCE:0",
    "#EXT-X-PLAYLIST-TYPE:VOD",
    ...(options.isIFramesOnly ? ["#EXT-X-I-FRAMES-ONLY"] : independence(options)),
    `#EXT-X-MAP:URI=${quoted(options.initUri)}`,
  ];
  for (const { uri, durationSeconds, range } of options.segments) {
    lines.push(`#EXTINF:${durationSeconds.toFixed(6)},`);
    if (range) lines.push(`#EXT-X-BYTERANGE:${range.bytes}@${range.offset}`);
    lines.push(uri);
  }
  lines.push("#EXT-X-ENDLIST", "");
  return lines.join("\n");
}

/** 4.4.2.1 */
const independence = ({ isIndependent = true }: { isIndependent?: boolean }): string[] =>
  isIndependent ? ["#EXT-X-INDEPENDENT-SEGMENTS"] : [];

export type AudioRendition = {
  group: string;
  name: string;
  language: string | null;
  channels: number;
  isDefault: boolean;
  uri: string;
};

export type SubtitleRendition = { group: string; name: string; language: string | null; uri: string };

export type Variant = {
  uri: string;
  /** bit/s; peak and average over the whole variant with its audio. */
  bandwidth: number;
  averageBandwidth: number;
  codecs: string[];
  width?: number | undefined;
  height?: number | undefined;
  frameRate?: number | undefined;
  /** SDR, HLG or PQ (draft-pantos-hls-rfc8216bis, 4.4.6.2). */
  videoRange?: string | undefined;
  audioGroup?: string | undefined;
  /** The group of its subtitles, which then are all of its captions: there are none in the video that players should show. */
  subtitleGroup?: string | undefined;
  /** Players that can choose prefer a higher one; all variants have one, or none (draft-pantos-hls-rfc8216bis, 4.4.6.2). */
  score?: number | undefined;
};

export type FrameVariant = Pick<
  Variant,
  "uri" | "bandwidth" | "averageBandwidth" | "codecs" | "width" | "height" | "videoRange"
>;

export function masterPlaylist(options: {
  version: number;
  variants: readonly Variant[];
  audio: readonly AudioRendition[];
  subtitles?: readonly SubtitleRendition[];
  frames?: readonly FrameVariant[];
  /** Each segment of all playlists begins with a keyframe; the default. */
  isIndependent?: boolean;
}): string {
  const lines = ["#EXTM3U", `#EXT-X-VERSION:${options.version}`, ...independence(options)];
  for (const track of options.audio) {
    const language = track.language ? `,LANGUAGE=${quoted(track.language)}` : "";
    lines.push(
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=${quoted(track.group)},NAME=${quoted(track.name)}${language},DEFAULT=${track.isDefault ? "YES" : "NO"},AUTOSELECT=YES,CHANNELS="${track.channels}",URI=${quoted(track.uri)}`,
    );
  }
  for (const { group, name, language, uri } of options.subtitles ?? [])
    lines.push(
      `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=${quoted(group)},NAME=${quoted(name)}${language ? `,LANGUAGE=${quoted(language)}` : ""},DEFAULT=NO,AUTOSELECT=YES,URI=${quoted(uri)}`,
    );
  for (const variant of options.variants) {
    const attributes = attributesOf(variant);
    if (variant.frameRate) attributes.push(`FRAME-RATE=${variant.frameRate.toFixed(3)}`);
    if (variant.score !== undefined) attributes.push(`SCORE=${variant.score}`);
    if (variant.audioGroup) attributes.push(`AUDIO=${quoted(variant.audioGroup)}`);
    if (variant.subtitleGroup) attributes.push(`SUBTITLES=${quoted(variant.subtitleGroup)}`, "CLOSED-CAPTIONS=NONE");
    lines.push(`#EXT-X-STREAM-INF:${attributes.join(",")}`, variant.uri);
  }
  for (const one of options.frames ?? [])
    lines.push(`#EXT-X-I-FRAME-STREAM-INF:${[...attributesOf(one), `URI=${quoted(one.uri)}`].join(",")}`);
  lines.push("");
  return lines.join("\n");
}

/** Attributes that EXT-X-STREAM-INF and EXT-X-I-FRAME-STREAM-INF share. */
function attributesOf({ bandwidth, averageBandwidth, codecs, width, height, videoRange }: FrameVariant): string[] {
  const attributes = [
    `BANDWIDTH=${Math.ceil(bandwidth)}`,
    `AVERAGE-BANDWIDTH=${Math.ceil(averageBandwidth)}`,
    `CODECS=${quoted(codecs.join(","))}`,
  ];
  if (width && height) attributes.push(`RESOLUTION=${width}x${height}`);
  if (videoRange) attributes.push(`VIDEO-RANGE=${videoRange}`);
  return attributes;
}

/** 4.1 and 4.2: a quoted string contains no control character and no quote, and has no escapes. */
export const quoted = (value: string) => `"${value.replace(/\p{Cc}/gu, " ").replaceAll('"', "'")}"`;

/**
 * Peak and average bitrate in bit/s. 4.1: the peak is the largest rate of any contiguous run of segments that lasts
 * between 0.5 and 1.5 target durations, so a short last segment does not count alone.
 */
export function bitRates(
  segments: readonly { bytes: number; durationSeconds: number }[],
  targetDurationSeconds: number,
) {
  const bits = segments.reduce((sum, segment) => sum + segment.bytes * 8, 0);
  const duration = segments.reduce((sum, segment) => sum + segment.durationSeconds, 0);
  const average = duration > 0 ? bits / duration : 0;
  let peak = 0;
  for (let first = 0; first < segments.length; first++) {
    let runBits = 0;
    let runDuration = 0;
    for (let last = first; last < segments.length; last++) {
      const segment = segments[last] as { bytes: number; durationSeconds: number };
      runBits += segment.bytes * 8;
      runDuration += segment.durationSeconds;
      if (runDuration > targetDurationSeconds * 1.5) break;
      if (runDuration >= targetDurationSeconds * 0.5) peak = Math.max(peak, runBits / runDuration);
    }
  }
  return { peak: peak || average, average };
}
