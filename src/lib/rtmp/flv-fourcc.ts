import type { ConvertibleCodec, LiveVideoCodec } from "#lib/codecs";

/** FourCC of Enhanced RTMP and the codec; the codecs that the packager writes. */
export const VIDEO_FOURCC: ReadonlyMap<string, LiveVideoCodec> = new Map([
  ["avc1", "h264"],
  ["hvc1", "hevc"],
  ["av01", "av1"],
]);

/** The same for audio: AAC is packaged, others are converted to it. */
export const AUDIO_FOURCC = new Map<string, "aac" | { codec: ConvertibleCodec; name: string }>([
  ["mp4a", "aac"],
  ["Opus", { codec: "opus", name: "Opus" }],
  [".mp3", { codec: "mpeg", name: "MP3" }],
  ["ac-3", { codec: "ac3", name: "AC-3" }],
  ["ec-3", { codec: "ac3", name: "E-AC-3" }],
]);

/** What this server accepts, as announced in the response to connect. */
export const FOURCC = { video: [...VIDEO_FOURCC.keys()], audio: [...AUDIO_FOURCC.keys()] } as const;
