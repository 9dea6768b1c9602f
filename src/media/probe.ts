import * as v from "valibot";
import { type HdrFormat, hdrOfTransfer, type Rate, type SphericalMetadata } from "#lib/codecs";
import type { ColorTags } from "./color.ts";
import { encryptedTracksOf } from "./encrypted-tracks.ts";
import { isSourceFault, MediaError } from "./error.ts";
import { type Binaries, run, untrustedInput } from "./ffmpeg.ts";
import { decodableCodecs } from "./ffmpeg-components.ts";
import { fraction, seconds, withPackets, withParameters } from "./probe-streams.ts";
import { ofFirstProgram } from "./programs.ts";
import { isPng, knownFormat, readHead } from "./signatures.ts";
import { SPHERICAL_ENTRIES, sphericalOf } from "./spherical-side-data.ts";
import { streamsWithPackets } from "./streams-with-packets.ts";
import type { Jumps } from "./timeline/packet-lines.ts";
import type { Pause } from "./timeline/pauses.ts";
import { divideTracks, isMedia, nothingPlays, type SkippedTrack, stillImage, unsupportedFormat } from "./tracks.ts";
import { isTruncated } from "./truncated.ts";

export type VideoTrack = {
  index: number;
  /** The PID, in a transport stream. */
  id: number | null;
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
  /** The size before that, and the width of a pixel as a share of its height; null in plans of earlier versions. */
  stored: { width: number; height: number; pixelAspect: Rate } | null;
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
  /** Frames are deinterlaced: as the file states, until the content has been examined (fields/deinterlacing.ts). */
  isInterlaced: boolean;
  /** The file states it explicitly, and the content does not contradict it. */
  isProgressive: boolean;
  /**
   * Which field of all frames is the earlier one; "flagged": each frame states it, or that it is progressive; "separate": what is
   * decoded are fields, and `stored` is the size of one.
   */
  fieldOrder: "flagged" | "tff" | "bff" | "separate";
  /** 2: each packet is a field. */
  packetsPerFrame: 1 | 2;
  /** Pixels are square. */
  isSquare: boolean;
  startSeconds: number;
  durationSeconds: number | null;
  /** By how much its frames are shown earlier than their times state: AVI has only the times at which they are decoded. */
  delaySeconds: number;
  pauses: readonly Pause[];
};

/** A pixel that is wider or higher than this is a mistake. */
export const MAX_PIXEL_ASPECT = 16;

export type AudioTrack = {
  index: number;
  /** The PID, in a transport stream. */
  id: number | null;
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
  pauses: readonly Pause[];
};

export type Probe = {
  format: string;
  /** Null when the container does not state it, as in browser recordings. */
  durationSeconds: number | null;
  /** Whether it does: a recording that was never completed has no index either. */
  statesDuration: boolean;
  startSeconds: number;
  video: VideoTrack | null;
  /** Video tracks that do not play. */
  otherVideo: VideoTrack[];
  audio: AudioTrack[];
  /** Tracks that cannot be decoded, and subtitles that are no text. */
  skipped: SkippedTrack[];
  /** Where its times jump, in seconds from its start; they were corrected. Null where they do not, or are not measured. */
  jumps: Jumps | null;
  /**
   * What is copied to another file before it is encoded: a transport stream whose tables change so that tracks would be lost
   * (transport/rewrite.ts), or the links of a chained Ogg file (ogg/join-links.ts).
   */
  rewriting: "programs" | "links" | null;
  /** The file is shorter than its container states. */
  isTruncated: boolean;
};

const text = v.optional(v.string(), "");
const number = v.optional(v.number(), 0);
const FfprobeStream = v.object({
  index: v.number(),
  id: text,
  codec_type: text,
  codec_name: text,
  codec_tag_string: text,
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
  has_b_frames: number,
  r_frame_rate: text,
  avg_frame_rate: text,
  start_time: text,
  duration: text,
  channels: number,
  sample_rate: text,
  nb_frames: text,
  nb_read_packets: text,
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
  programs: v.optional(v.array(v.object({ streams: v.optional(v.array(v.object({ index: v.number() })), []) })), []),
});
type Stream = v.InferOutput<typeof FfprobeStream>;

const ENTRIES = [
  "format=format_name,duration,start_time",
  `stream=index,id,codec_type,codec_name,codec_tag_string,profile,level,width,height,sample_aspect_ratio,pix_fmt,color_range,color_space,color_primaries,color_transfer,field_order,has_b_frames,${"r_frame_rate,avg_frame_rate,start_time,duration,channels,sample_rate,nb_frames,nb_read_packets"}`,
  "stream_disposition=attached_pic,default",
  "stream_tags=language,rotate",
  `stream_side_data=displaymatrix,dv_profile,dv_bl_signal_compatibility_id,${Object.keys(SPHERICAL_ENTRIES).join(",")}`,
].join(":");

/**
 * Reads the streams of the media file at `path` without decoding, as its headers state them; `probeSource` (timeline.ts) has
 * the times of its packets. Throws MediaError `input_invalid` (damaged, or not a media file), `unsupported_format` (a still
 * image, or nothing in it can be decoded), `input_has_no_media` (neither video nor audio), `timeout`, `aborted`.
 */
export async function probe(path: string, binaries: Binaries, options: ProbeOptions = {}): Promise<Probe> {
  const args = ["-count_packets", "-read_intervals", `%+#${FIRST_PACKETS}`, "-show_entries", ENTRIES];
  const stdout = await ffprobe(path, binaries, args, options);
  const answer = v.safeParse(v.pipe(v.string(), v.parseJson(), FfprobeOutput), stdout.toString("utf8"));
  if (!answer.success) throw new MediaError("input_invalid", "The source is not a readable media file.", false);
  const image = knownFormat(await readHead(path));
  if (image?.isImage) throw stillImage(image.name);
  const { format, programs } = answer.output;
  const streams = await withPackets(answer.output, async () => {
    const { makeWhole, timeLimitMs: _, ...others } = options;
    await makeWhole?.();
    return streamsWithPackets(path, binaries, others).catch((error) => blameSource(error, path));
  });
  const decodable = await decodableCodecs(binaries.ffmpeg);
  const known = await withParameters(streams, decodable, async () => {
    await options.makeWhole?.();
    const args = [...UNTIL_KNOWN, "-show_entries", ENTRIES];
    const all = await ffprobe(path, binaries, args, { ...options, timeLimitMs: COUNT_LIMIT_MS });
    return v.parse(v.pipe(v.string(), v.parseJson(), FfprobeOutput), all.toString()).streams;
  });
  const encrypted = await encryptedTracksOf(path);
  const stated = known.map((one) => (encrypted.has(one.index) ? { ...one, isEncrypted: true } : one));
  const media = toProbe({ format, streams: stated, programs }, decodable);
  return { ...media, isTruncated: await isTruncated(path) };
}

export type ProbeOptions = {
  signal?: AbortSignal;
  cwd?: string;
  pidDir?: string;
  timeLimitMs?: number;
  memoryBytes?: number | undefined;
  /** Completes a file of which only a part is there, when that does not suffice. */
  makeWhole?: () => Promise<void>;
  /** Called again and again while the source is read, which takes minutes for a large one. */
  onMove?: (() => void) | undefined;
};

/** In which each track usually has some: more are read only for a track without any. */
const FIRST_PACKETS = 60;
/** Reads as much as it takes to know the parameters of all tracks, without keeping it. */
const UNTIL_KNOWN = ["-fflags", "+nobuffer", "-probesize", String(2 ** 50), "-analyzeduration", String(2 ** 50)].concat(
  "-read_intervals",
  "%+#1",
);
/** All of a large source is read, without decoding. */
const COUNT_LIMIT_MS = 3_600_000;

const ffprobe = (
  path: string,
  { ffprobe: binary }: Pick<Binaries, "ffprobe">,
  args: readonly string[],
  { makeWhole: _, onMove: __, timeLimitMs = 60_000, ...options }: ProbeOptions,
): Promise<Buffer> =>
  run(binary, {
    ...options,
    args: ["-hide_banner", "-loglevel", "error", "-of", "json", ...args, ...untrustedInput(path)],
    reads: [path],
    timeLimitMs,
  }).catch((error) => blameSource(error, path));

const MACHINE_FAULT = /No such file or directory|Permission denied|Input\/output error|failed to execute/;
const OTHER_FORMAT = /\[([\w,]{1,60}) @ [^\]]{1,40}\] Format not on whitelist/;

/** Whatever ffprobe's message, reading headers fails because of the source. */
async function blameSource(error: unknown, path: string): Promise<never> {
  if (!isSourceFault(error) || error.signal !== null) throw error;
  const { logTail } = error;
  if (MACHINE_FAULT.test(logTail)) throw error;
  const head = await readHead(path);
  if (isPng(head)) throw stillImage("PNG", logTail);
  const known = knownFormat(head);
  if (known?.isImage) throw stillImage(known.name, logTail);
  const format = known?.name ?? OTHER_FORMAT.exec(logTail)?.[1];
  if (format) throw unsupportedFormat(`The container of the source (${format}) is not supported.`, logTail);
  throw new MediaError("input_invalid", "The source is not a readable media file.", false, logTail);
}

/** Containers of animations. One with a single frame is a still image. */
const ANIMATIONS: readonly string[] = ["gif", "apng"];

function toProbe(
  { format, streams, programs }: Omit<v.InferOutput<typeof FfprobeOutput>, "streams"> & { streams: readonly Stream[] },
  decodable: ReadonlySet<string>,
) {
  const tracks = ofFirstProgram(divideTracks(streams, decodable), programs);
  const video = tracks.video.find((s) => s.disposition.default) ?? tracks.video[0];
  if (!video && tracks.audio.length === 0) {
    const skipped = tracks.skipped.filter(isMedia);
    if (streams.length === 0 || skipped.length > 0) throw nothingPlays(format.format_name, skipped);
    throw new MediaError("input_has_no_media", "The source has neither video nor audio.", false);
  }
  if (ANIMATIONS.includes(format.format_name) && video?.nb_read_packets === "1") throw stillImage(format.format_name);
  const audio = tracks.audio.map(toAudio);
  const lengths = streams.map((s) => seconds(s.duration)).filter((length) => length !== null);
  const stated = seconds(format.duration) ?? (lengths.length ? Math.max(...lengths) : null);
  return {
    format: format.format_name,
    durationSeconds: stated,
    statesDuration: stated !== null,
    startSeconds: Number(format.start_time) || 0,
    video: video ? toVideo(video, format.format_name) : null,
    otherVideo: tracks.video.filter((one) => one !== video).map((one) => toVideo(one, format.format_name)),
    // The default track first: it becomes the default rendition.
    audio: audio.toSorted((a, b) => Number(b.isDefault) - Number(a.isDefault) || a.index - b.index),
    skipped: tracks.skipped,
    jumps: null,
    rewriting: null,
  };
}

function toVideo(stream: Stream, format: string): VideoTrack {
  const { isMirrored, rotation } = orientationOf(stream);
  const ratio = fraction(stream.sample_aspect_ratio.replace(":", "/"));
  const aspect = ratio.num / ratio.den;
  const isPlausible = aspect >= 1 / MAX_PIXEL_ASPECT && aspect <= MAX_PIXEL_ASPECT;
  // Makes pixels square by enlarging one dimension, so that no line of the source is lost.
  const stretch = isPlausible ? aspect : 1;
  const wide = Math.round(stretch > 1 ? stream.width * stretch : stream.width);
  const high = Math.round(stretch < 1 ? stream.height / stretch : stream.height);
  const isSideways = rotation === 90 || rotation === 270;
  const depth = Number(/(\d\d)(le|be)$/.exec(stream.pix_fmt)?.[1] ?? 8);
  const hdr = hdrOfTransfer(stream.color_transfer);
  return {
    index: stream.index,
    id: /^0x[0-9a-f]+$/.test(stream.id) ? Number(stream.id) : null,
    codec: stream.codec_name,
    profile: stream.profile,
    level: stream.level,
    width: isSideways ? high : wide,
    height: isSideways ? wide : high,
    isMirrored,
    rotation,
    stored: { width: stream.width, height: stream.height, pixelAspect: isPlausible ? ratio : { num: 1, den: 1 } },
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
    fieldOrder: "flagged",
    packetsPerFrame: 1,
    isSquare: ratio.num === ratio.den || ratio.num === 0,
    startSeconds: Number(stream.start_time) || 0,
    durationSeconds: seconds(stream.duration),
    delaySeconds: format === "avi" && REORDERED.test(stream.codec_name) ? reorderSeconds(stream) : 0,
    pauses: [],
  };
}

/** Codecs whose decoders return a frame only after the ones that are stored before and shown later. */
const REORDERED = /^(h264|hevc)$/;

function reorderSeconds({ avg_frame_rate, has_b_frames }: Stream): number {
  const { num, den } = fraction(avg_frame_rate);
  return num > 0 ? Math.min(MAX_REORDER_SECONDS, (has_b_frames * den) / num) : 0;
}
/** H.264 reorders at most 16 frames; more is a rate that is not one. */
const MAX_REORDER_SECONDS = 1;

function toAudio(stream: Stream): AudioTrack {
  const language = stream.tags.language ?? "";
  return {
    index: stream.index,
    id: /^0x[0-9a-f]+$/.test(stream.id) ? Number(stream.id) : null,
    codec: stream.codec_name,
    profile: stream.profile,
    sampleRate: Number(stream.sample_rate) || 0,
    channels: stream.channels,
    language: /^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}$/.test(language) && language !== "und" ? language : null,
    isDefault: stream.disposition.default === 1,
    startSeconds: Number(stream.start_time) || 0,
    durationSeconds: seconds(stream.duration),
    pauses: [],
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
