import type { LiveVideoCodec } from "#lib/codecs";

/** FourCC of Enhanced RTMP and the codec; the codecs that the packager writes. */
export const VIDEO_FOURCC: ReadonlyMap<string, LiveVideoCodec> = new Map([
  ["avc1", "h264"],
  ["hvc1", "hevc"],
  ["av01", "av1"],
]);

/** What this server accepts, as announced in the response to connect. */
export const FOURCC = { video: [...VIDEO_FOURCC.keys()], audio: ["mp4a"] } as const;
