import * as v from "valibot";
import { type HdrFormat, hdrOfTransfer } from "../lib/hdr.ts";
import type { SphericalMetadata } from "../lib/spherical.ts";
import type { ColorTags } from "./color.ts";
import { MediaError } from "./error.ts";
import { type Binaries, run, untrustedInput } from "./ffmpeg.ts";
import type { Rate } from "./ladder.ts";
import { SPHERICAL_ENTRIES, sphericalOf } from "./spherical-side-data.ts";

export type VideoTrack = {
  index: number;
  codec: string;
  /** ffprobe's name: "High", "Main"; "" when unknown. */
  profile: string;
  /** In the unit of the codec. */
  level: number;
  /** Display size: after rotation, with square pixels. */
  width: number;
  height: number;
  /** What to apply for display: first left and right change places, then it is rotated clockwise by these degrees. */
  isMirrored: boolean;
  rotation: 0 | 90 | 180 | 270;
  averageRate: Rate;
  declaredRate: Rate;
  pixelFormat: string;
  bitDepth: number;
  /** Set when the transfer function is PQ or HLG, which needs tone mapping for an SDR display. */
  isHdr: boolean;
  /** The format in which renditions can keep its HDR; null for SDR, for fewer than 10 bit, and for Dolby Vision alone. */
  hdr: HdrFormat | null;
  /** What the file states of its colors; null in plans of earlier versions. */
  color: ColorTags | null;
  /** What the container states for VR players; null for a flat, monoscopic video, and in plans of earlier versions. */
  spherical: SphericalMetadata | null;
  isInterlaced: boolean;
  /** The file states it explicitly. */
  isProgressive: boolean;
  /** Pixels are square. */
  isSquare: boolean;
  startSeconds: number;
  durationSeconds: number | null;
};

export type AudioTrack = {
  index: number;
  codec: string;
  /** ffprobe's name: "LC", "HE-AAC"; "" when unknown. */
  profile: string;
  sampleRate: number;
  channels: number;
  /** BCP 47 or ISO 639 as in the file, checked for syntax only. */
  language: string | null;
  isDefault: boolean;
  startSeconds: number;
  durationSeconds: number | null;
};

export type Probe = {
  format: string;
  /** Null when the container does not state it, as in browser recordings. */
  durationSeconds: number | null;
  /** Whether it does: a recording that was never completed has no index either. */
  statesDuration: boolean;
  startSeconds: number;
  video: VideoTrack | null;
  audio: AudioTrack[];
};

const text = v.optional(v.string(), "");
const number = v.optional(v.number(), 0);
const FfprobeStream = v.object({
  index: v.number(),
  codec_type: text,
  codec_name: text,
  profile: text,
  level: number,
  width: number,
  height: number,
  sample_aspect_ratio: text,
  pix_fmt: text,
  color_range: text,
  color_space: text,
  color_primaries: text,
  color_transfer: text,
  field_order: text,
  r_frame_rate: text,
  avg_frame_rate: text,
  start_time: text,
  duration: text,
  channels: number,
  sample_rate: text,
  disposition: v.optional(v.record(v.string(), v.number()), {}),
  tags: v.optional(v.record(v.string(), v.string()), {}),
  side_data_list: v.optional(
    v.array(
      v.looseObject({
        displaymatrix: v.optional(v.string()),
        dv_profile: v.optional(v.number()),
        dv_bl_signal_compatibility_id: v.optional(v.number()),
        ...SPHERICAL_ENTRIES,
      }),
    ),
    [],
  ),
});
const FfprobeOutput = v.object({
  format: v.object({ format_name: v.string(), duration: text, start_time: text }),
  streams: v.array(FfprobeStream),
});
type Stream = v.InferOutput<typeof FfprobeStream>;

const ENTRIES = [
  "format=format_name,duration,start_time",
  `stream=index,codec_type,codec_name,profile,level,width,height,sample_aspect_ratio,pix_fmt,color_range,color_space,color_primaries,color_transfer,field_order,${"r_frame_rate,avg_frame_rate,start_time,duration,channels,sample_rate"}`,
  "stream_disposition=attached_pic,default",
  "stream_tags=language,rotate",
  `stream_side_data=displaymatrix,dv_profile,dv_bl_signal_compatibility_id,${Object.keys(SPHERICAL_ENTRIES).join(",")}`,
].join(":");

export type ProbeOptions = {
  signal?: AbortSignal;
  cwd?: string;
  pidDir?: string;
  memoryBytes?: number | undefined;
};

/**
 * Reads the streams of the media file at `path` without decoding, as its headers state them; `probeSource` (timeline.ts) has
 * the times of its packets. Throws MediaError `input_invalid` (not a media file),
 * `input_has_no_media` (neither video nor audio), `timeout`, `aborted`.
 */
export async function probe(path: string, binaries: Binaries, options: ProbeOptions = {}): Promise<Probe> {
  const stdout = await run(binaries.ffprobe, {
    args: ["-hide_banner", "-loglevel", "error", "-of", "json", "-show_entries", ENTRIES, ...untrustedInput(path)],
    ...(options.cwd && { cwd: options.cwd }),
    reads: [path],
    timeLimitMs: 60_000,
    memoryBytes: options.memoryBytes,
    ...(options.signal && { signal: options.signal }),
    ...(options.pidDir && { pidDir: options.pidDir }),
  }).catch(blameSource);
  const answer = v.safeParse(v.pipe(v.string(), v.parseJson(), FfprobeOutput), stdout.toString("utf8"));
  if (!answer.success) throw new MediaError("input_invalid", "The source is not a readable media file.", false);
  return toProbe(answer.output);
}

const MACHINE_FAULT = /No such file or directory|Permission denied|Input\/output error|failed to execute/;

/** Whatever ffprobe's message, reading headers fails because of the source. */
function blameSource(error: unknown): never {
  if (!(error instanceof MediaError) || error.exitCode === null) throw error;
  if (MACHINE_FAULT.test(error.logTail)) throw error;
  throw new MediaError("input_invalid", "The source is not a readable media file.", false, error.logTail);
}

function toProbe({ format, streams }: v.InferOutput<typeof FfprobeOutput>): Probe {
  // ffmpeg reports cover art as a video stream, but it is not video.
  const videoStreams = streams.filter(
    (s) => s.codec_type === "video" && s.width > 0 && s.height > 0 && isCoded(s) && !s.disposition.attached_pic,
  );
  const video = videoStreams.find((s) => s.disposition.default) ?? videoStreams[0];
  const audioStreams = streams.filter((s) => s.codec_type === "audio" && s.channels > 0 && isCoded(s));
  if (!video && audioStreams.length === 0) {
    throw new MediaError("input_has_no_media", "The source has neither video nor audio.", false);
  }
  const audio = audioStreams.map(toAudio);
  const lengths = streams.map((s) => seconds(s.duration)).filter((length) => length !== null);
  const stated = seconds(format.duration) ?? (lengths.length ? Math.max(...lengths) : null);
  return {
    format: format.format_name,
    durationSeconds: stated,
    statesDuration: stated !== null,
    startSeconds: Number(format.start_time) || 0,
    video: video ? toVideo(video) : null,
    // The default track first: it becomes the default rendition.
    audio: audio.toSorted((a, b) => Number(b.isDefault) - Number(a.isDefault) || a.index - b.index),
  };
}

const isCoded = (stream: Stream) =>
  stream.codec_name !== "" && stream.codec_name !== "unknown" && stream.codec_name !== "none";

function toVideo(stream: Stream): VideoTrack {
  const { isMirrored, rotation } = orientationOf(stream);
  const ratio = fraction(stream.sample_aspect_ratio.replace(":", "/"));
  const aspect = ratio.num / ratio.den;
  const isPlausible = aspect > 1 / 16 && aspect < 16;
  // Makes pixels square by enlarging one dimension, so that no line of the source is lost.
  const stretch = isPlausible ? aspect : 1;
  const wide = Math.round(stretch > 1 ? stream.width * stretch : stream.width);
  const high = Math.round(stretch < 1 ? stream.height / stretch : stream.height);
  const isSideways = rotation === 90 || rotation === 270;
  const depth = Number(/(\d\d)(le|be)$/.exec(stream.pix_fmt)?.[1] ?? 8);
  const hdr = hdrOfTransfer(stream.color_transfer);
  return {
    index: stream.index,
    codec: stream.codec_name,
    profile: stream.profile,
    level: stream.level,
    width: isSideways ? high : wide,
    height: isSideways ? wide : high,
    isMirrored,
    rotation,
    averageRate: fraction(stream.avg_frame_rate),
    declaredRate: fraction(stream.r_frame_rate),
    pixelFormat: stream.pix_fmt,
    bitDepth: depth,
    isHdr: hdr !== null,
    hdr: depth >= MIN_HDR_BITS && !isDolbyVisionOnly(stream) ? hdr : null,
    color: {
      matrix: stream.color_space,
      primaries: stream.color_primaries,
      transfer: stream.color_transfer,
      range: stream.color_range,
    },
    spherical: sphericalOf(stream.side_data_list, stream),
    isInterlaced: ["tt", "bb", "tb", "bt"].includes(stream.field_order),
    isProgressive: stream.field_order === "progressive",
    isSquare: ratio.num === ratio.den || ratio.num === 0,
    startSeconds: Number(stream.start_time) || 0,
    durationSeconds: seconds(stream.duration),
  };
}

function toAudio(stream: Stream): AudioTrack {
  const language = stream.tags.language ?? "";
  return {
    index: stream.index,
    codec: stream.codec_name,
    profile: stream.profile,
    sampleRate: Number(stream.sample_rate) || 0,
    channels: stream.channels,
    language: /^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$/.test(language) && language !== "und" ? language : null,
    isDefault: stream.disposition.default === 1,
    startSeconds: Number(stream.start_time) || 0,
    durationSeconds: seconds(stream.duration),
  };
}

/** ITU-R BT.2100, table 9. */
const MIN_HDR_BITS = 10;

/**
 * Whether the base layer of Dolby Vision is not the HDR10 or HLG that it is tagged as, such as that of profile 5: then no
 * other decoder shows its colors (Dolby Vision Streams Within the ISO Base Media File Format, 2.2).
 */
const isDolbyVisionOnly = ({ side_data_list }: Stream): boolean =>
  side_data_list.some(
    ({ dv_profile: profile, dv_bl_signal_compatibility_id: compatible }) =>
      profile === 5 || (profile !== undefined && compatible === 0),
  );

/**
 * From the display matrix (ISO/IEC 14496-12, 8.3.2: a, b, u, c, d, v …; ffprobe prints three numbers a line), which may also
 * mirror; or from the older `rotate` tag, in clockwise degrees.
 */
function orientationOf(stream: Stream): Pick<VideoTrack, "isMirrored" | "rotation"> {
  const text = stream.side_data_list.find(({ displaymatrix }) => displaymatrix !== undefined)?.displaymatrix;
  const rows = [...(text ?? "").matchAll(/^\d{8}:\s+(-?\d+)\s+(-?\d+)/gm)];
  const [[a, b], [c, d]] = [rows[0], rows[1]].map((row) => [Number(row?.[1] ?? 0), Number(row?.[2] ?? 0)]) as [
    [number, number],
    [number, number],
  ];
  const determinant = a * d - b * c;
  if (determinant === 0) return { isMirrored: false, rotation: quarters(Number(stream.tags.rotate ?? 0) || 0) };
  const isMirrored = determinant < 0;
  const degrees = (Math.atan2(isMirrored ? -b : b, isMirrored ? -a : a) * 180) / Math.PI;
  return { isMirrored, rotation: quarters(degrees) };
}

/** The nearest rotation that the renditions can have. */
const quarters = (clockwise: number) => ((((Math.round(clockwise / 90) % 4) + 4) % 4) * 90) as VideoTrack["rotation"];

function seconds(value: string): number | null {
  const parsed = Number.parseFloat(value);
  return Number.isFinite(parsed) && parsed > 0 ? parsed : null;
}

function fraction(value: string): Rate {
  const [num = 0, den = 0] = value.split("/").map(Number);
  return num > 0 && den > 0 ? { num, den } : { num: 0, den: 1 };
}
