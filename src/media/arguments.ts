import { join } from "node:path";
import {
  audioCodecs,
  deviceArguments,
  type Encoder,
  type HdrFormat,
  type HdrMetadata,
  type Rate,
  videoCodecs,
} from "#lib/codecs";
import { audioGraph } from "./audio-filters.ts";
import { clockOutput, tracksOf } from "./clock-output.ts";
import { colorFilters, hdrFilters } from "./color.ts";
import { constantFrames } from "./constant-frames.ts";
import type { AdditionalVideo, EncodingSpec } from "./encoding-spec.ts";
import { ANY_ERROR_RATE, untrustedInput } from "./ffmpeg.ts";
import { deinterlacingFilters } from "./fields/filters.ts";
import type { PlannedRendition } from "./ladder.ts";
import { orientationFilters } from "./orientation.ts";
import { audioBitrate, type EncodePlan, heldFrames, MAX_DURATION_SECONDS, type PlannedAudio } from "./plan.ts";
import { withoutPauses } from "./timeline/pauses.ts";
import { watermarkImage, watermarkInput, watermarkOverlay } from "./watermark.ts";

/** 8192 x 8192: admits 8K and VR, and refuses an image that claims a terabyte of memory. */
export const MAX_PIXELS = 8192 * 8192;

export const INIT_NAME = "init.mp4";
export const SEGMENT_TEMPLATE = "$Number%05d$.m4s";
export const SEGMENT_PATTERN = /^\d{5,}\.m4s$/;
/** The name that the template gives to segment `number`, counted from 1. */
export const segmentFileName = (number: number): string => `${String(number).padStart(5, "0")}.m4s`;
/** The muxer requires a manifest; ours replaces it. */
export const MUXER_MANIFEST = "muxer.mpd";

/** A range of frames of the constant frame grid, counted from 0. */
export type FrameRange = {
  firstFrame: number;
  /** Exclusive; null: to the end of the source. */
  endFrame: number | null;
  /** How long before the first frame the source is read from, or from the keyframe before that. */
  seekBackSeconds: number;
  /** The keyframe from which the source is read instead, where it is known; null: its first one. */
  seekSeconds?: number | null;
};

type ArgumentOptions = {
  input: string;
  outDir: string;
  plan: EncodePlan;
  spec: EncodingSpec;
  encoder?: Encoder | undefined;
  /**
   * Only these frames are encoded, with times from 0. Their first one is that of a segment, so that keyframes and
   * segments are the same as in a run over the whole source.
   */
  range?: FrameRange | undefined;
  /** Absolute path of the image of the specification's watermark. */
  watermark?: string | undefined;
  /** How much of the source is read, where the end of a range does not end the run, because audio is encoded too. */
  readSeconds?: number | undefined;
  /** Names of the video renditions to encode; all by default. Each is scaled as in a run over all of them. */
  only?: ReadonlySet<string> | undefined;
  /** False: copied audio is not decoded, which finds its faults; the caller does that. */
  isChecked?: boolean | undefined;
  /** What is produced from the source in all, where `plan` is a part of it. */
  whole?: EncodePlan | undefined;
  /** The video of `plan` is encoded with this codec instead of the primary one. */
  additional?: AdditionalVideo | undefined;
  /** Set when that codec keeps the HDR of the source. */
  hdr?: KeptHdr | undefined;
  /** For a copy in that codec: configurations in frames are removed. */
  isWithoutRepeats?: boolean | undefined;
};

/** The format of renditions that keep HDR, and what they state of it. */
export type KeptHdr = { format: HdrFormat; metadata: HdrMetadata };

/**
 * Arguments of the single ffmpeg run that produces everything: the source is decoded once, each size is scaled from the
 * one above it, and every rendition has its own segment muxer. One run took 50.5 s; a run per rendition for HLS and
 * another for DASH took 137 s.
 */
export function encodeArguments(options: ArgumentOptions): string[] {
  const { input, plan, whole, encoder = "software", range, readSeconds } = options;
  const isCopying = plan.video?.passthrough || plan.audio.some(({ isCopied }) => isCopied);
  return [
    ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning"],
    ...["-progress", "pipe:1", "-nostats", "-stats_period", "0.5"],
    // Rotation is done by our own filter, so that sizes always match the plan.
    ...["-noautorotate", "-max_pixels", String(MAX_PIXELS)],
    // Copied streams are decoded too, because only the decoder finds faults in them.
    ...(isCopying ? ["-xerror", "-err_detect", "explode"] : ANY_ERROR_RATE),
    ...deviceArguments(encoder).global,
    ...(range && plan.video ? seek(range, plan.video.rate) : []),
    // Times that do not jump are used as they are.
    ...(!range && (whole ?? plan).clockStart !== null ? ["-copyts", "-start_at_zero"] : []),
    ...(readSeconds === undefined ? [] : ["-t", readSeconds.toFixed(3)]),
    ...(isCopying ? UNCHANGED : KEPT_FILTERS),
    ...untrustedInput(input),
    ...(plan.video && options.watermark ? watermarkInput(options.watermark) : []),
    ...graphArguments([videoGraph(plan, options, encoder), audioGraph(plan.audio, options.spec)]),
    ...renditionsOf(plan, range).flatMap((one) => videoOutput(one, plan, options)),
    ...plan.audio.flatMap((one, index) => audioOutput(one, index, options)),
    ...(whole ? clockOutput(tracksOf(plan), whole, { isRange: range !== undefined }) : []),
  ];
}

/**
 * Times stay as in the source, from 0, so that the frame grid is the same. The frames from the keyframe to the first
 * one of the range are not dropped here but by the filters: those before it determine what the first one shows.
 */
export function seek({ firstFrame, seekBackSeconds, seekSeconds }: FrameRange, { num, den }: Rate): string[] {
  const from = seekSeconds === undefined ? (firstFrame * den) / num - seekBackSeconds : (seekSeconds ?? 0);
  // Without a limit of the input: ffmpeg would count it from the keyframe. It stops when the filters have all frames.
  return ["-copyts", "-start_at_zero", ...(from > 0 ? ["-noaccurate_seek", "-ss", from.toFixed(6)] : [])];
}

/** The packets of a range are copied by a run of their own, whose times begin with the range. */
const renditionsOf = ({ video }: EncodePlan, range: FrameRange | undefined) =>
  video ? (range ? encodedOf(video) : video.renditions) : [];

/** Nothing is decoded when all streams are copied. Audio and video apart: what changes in one must not affect the other. */
const graphArguments = (graphs: readonly string[]) =>
  graphs.flatMap((graph) => (graph ? ["-filter_complex", graph] : []));

/**
 * For an input whose frames may change their size or format: the filters stay, because new ones would begin again, and the
 * first of them (`constantFrames`) returns frames of one size.
 */
export const KEPT_FILTERS = ["-reinit_filter:v", "0"];
/** For an input that is copied, which must not change: samples that do end the run, frames that do are in its log. */
export const UNCHANGED = ["-reinit_filter", "0"];
/** What ffmpeg says of frames that change. */
export const CHANGED_FRAMES = "Changing video frame properties on the fly";

/** The renditions that are encoded. */
const encodedOf = ({ renditions, passthrough }: NonNullable<EncodePlan["video"]>) =>
  passthrough?.isCopied ? renditions.slice(1) : renditions;

/** Each encoded rendition ends in `[v<index>]`. */
export function videoGraph(
  { video }: Pick<EncodePlan, "video">,
  { spec, range, only, watermark, additional, hdr }: ArgumentOptions,
  encoder: Encoder,
): string {
  const encoded = video ? encodedOf(video) : [];
  const [top] = encoded;
  if (!video || !top) return "";
  const { pixel_format } = additional ?? spec.video;
  const { track } = video;
  const colors = hdr ? hdrFilters(track, hdr.format) : colorFilters(track);
  const overlay = overlayOptions(hdr);
  const chains: string[] = [];
  const filters = [
    ...constantFrames(track),
    ...withoutPauses(track.pauses),
    ...deinterlacingFilters(track),
    ...orientationFilters(track),
    ...(track.delaySeconds > 0 ? [`setpts=PTS-${track.delaySeconds.toFixed(6)}/TB`] : []),
    ...frameGrid(video, range),
    scale(top),
    ...colors.convert,
    `format=${pixel_format}`,
  ];
  let from = `[0:${track.index}]${filters.join(",")}`;
  const mark = watermark && spec.video.watermark;
  if (mark) {
    const image = watermarkImage(mark, top, { matrix: colors.matrix, hdr: hdr?.format ?? null });
    chains.push(`${from}[unmarked]`, `[1:v]${image}[mark]`);
    from = `[unmarked][mark]${watermarkOverlay(mark, top, overlay)},format=${pixel_format}`;
  }
  if (colors.tags.length > 0) from = `${from},${colors.tags}`;
  const last = deviceArguments(encoder).filters.map((filter) => `,${filter}`);
  const isWanted = encoded.map(({ name }) => only?.has(name) ?? true);
  return [...chains, ...cascade(from, encoded, { isWanted, last: last.join("") })].join(";");
}

/** The chains of all wanted renditions, each scaled from the one above it; `last`: the filters at the end of each. */
function cascade(
  from: string,
  renditions: readonly PlannedRendition[],
  { isWanted, last }: { isWanted: readonly boolean[]; last: string },
): string[] {
  const chains: string[] = [];
  let above = from;
  for (const [index, next] of [...renditions.slice(1, isWanted.lastIndexOf(true) + 1), null].entries()) {
    if (!next) chains.push(`${above}${last}[v${index}]`);
    else if (!isWanted[index]) above = `${above},${scale(next)}`;
    else {
      if (last) chains.push(`${above},split=2[p${index}][s${index}]`, `[p${index}]${last.slice(1)}[v${index}]`);
      else chains.push(`${above},split=2[v${index}][s${index}]`);
      above = `[s${index}]${scale(next)}`;
    }
  }
  return chains;
}

/**
 * One frame grid from 0, whatever the source's timestamps: segments of all renditions start at the same frames. The unit
 * of time after `fps` is one frame. When the audio outlasts the video, its last frame is repeated until the end.
 */
function frameGrid(video: NonNullable<EncodePlan["video"]>, range: FrameRange | undefined): string[] {
  const { num, den } = video.rate;
  const { firstFrame, endFrame } = range ?? { firstFrame: 0, endFrame: null };
  const isHeld = video.holdUntilSeconds > 0;
  const end = endFrame ?? (isHeld ? heldFrames(video) : null);
  const limits = [...(firstFrame > 0 ? [`start_pts=${firstFrame}`] : []), ...(end === null ? [] : [`end_pts=${end}`])];
  return [
    firstFrame > 0 ? `fps=${num}/${den}` : `fps=${num}/${den}:start_time=0`,
    // Without an end: `trim` has it.
    ...(isHeld ? ["tpad=stop=-1:stop_mode=clone"] : []),
    ...(limits.length > 0 ? [`trim=${limits.join(":")}`] : []),
    ...(firstFrame > 0 ? [`setpts=PTS-${firstFrame}`] : []),
  ];
}

const scale = ({ width, height }: PlannedRendition) => `scale=${width}:${height}:flags=bicubic,setsar=1`;

/** Options of ffmpeg's `overlay`, which otherwise reduces both videos to 8 bit. */
const overlayOptions = (hdr: KeptHdr | undefined) => ["eof_action=repeat", ...(hdr ? ["format=yuv420p10"] : [])];

function videoOutput(
  one: PlannedRendition,
  { video }: EncodePlan,
  { spec, outDir, encoder = "software", range, only, additional, hdr, isWithoutRepeats }: ArgumentOptions,
): string[] {
  if (!video || only?.has(one.name) === false) return [];
  const index = encodedOf(video).indexOf(one);
  if (index < 0)
    return [...copied(video, additional, isWithoutRepeats), ...segmentWriter(join(outDir, one.name), cuts(spec))];
  const codec = videoCodecs[spec.video.codec];
  const framesPerGop = Math.ceil((video.rate.num / video.rate.den) * spec.gop_seconds);
  const isContinued = range !== undefined && range.firstFrame > 0;
  return [
    ...["-map", `[v${index}]`],
    ...(additional
      ? videoCodecs[additional.codec].encoderArguments[encoder](one, {
          ...additional,
          hdr: hdr?.metadata,
          isContinued,
        })
      : codec.encoderArguments[encoder](one, { ...spec.video, isContinued })),
    // Keyframes are placed by time alone. A frame count would drift from it at 23.976, and scene-cut keyframes would
    // not match in other renditions; -g is only an upper bound.
    "-force_key_frames",
    video.passthrough
      ? timesBefore(keyTimesIn(range, video.passthrough.keyTimes, video.rate), video.rate)
      : keyframes(spec, video.rate, range),
    ...["-g", String(framesPerGop * 4)],
    ...segmentWriter(join(outDir, one.name), range ? rangeCuts(spec, video) : cuts(spec)),
  ];
}

function copied(
  { track }: NonNullable<EncodePlan["video"]>,
  additional?: AdditionalVideo,
  isWithoutRepeats = false,
): string[] {
  const copy = additional && videoCodecs[additional.codec].copy;
  return [
    ...["-map", `0:${track.index}`, "-c:v", "copy"],
    ...(copy ? [...copy.arguments, ...(isWithoutRepeats ? copy.withoutRepeats : [])] : []),
  ];
}

/** The keyframes of a range are those that a run over the whole source places: at the first frame at n x 2 s or later. */
function keyframes({ gop_seconds }: EncodingSpec, { num, den }: Rate, range: FrameRange | undefined): string {
  if (!range || range.firstFrame === 0) return `expr:gte(t,n_forced*${gop_seconds})`;
  const before = Math.round((range.firstFrame * den) / num / gop_seconds);
  // Rounding of the sum must not move a keyframe to the next frame.
  return `expr:gte(t+${range.firstFrame}*${den}/${num}+0.0001,(n_forced+${before})*${gop_seconds})`;
}

/** Each a quarter of a frame early: the frame at or after it is the intended one, however times are rounded. */
const timesBefore = (times: readonly number[], { num, den }: Rate) =>
  times.map((seconds) => Math.max(0, seconds - den / num / 4).toFixed(4)).join(",");

/** Decodes a track, which finds its faults. */
export const decodeOutput = ({ track }: PlannedAudio): string[] => [
  ...["-map", `0:${track.index}`, "-c:a", "pcm_s16le", "-f", "null", "-"],
];

/** `index`: of the track in the plan, as in the filter graph. */
export function audioOutput(
  one: PlannedAudio,
  index: number,
  { spec, outDir, isChecked = true }: Pick<ArgumentOptions, "spec" | "outDir" | "isChecked">,
): string[] {
  if (one.isCopied) {
    // The first packets have negative times, which an edit list removes. They are decoded too, because copied streams
    // must be free of faults.
    const copy = ["-map", `0:${one.track.index}`, "-c:a", "copy", "-copypriorss", "1"];
    return [...copy, ...segmentWriter(join(outDir, one.name), cuts(spec)), ...(isChecked ? decodeOutput(one) : [])];
  }
  return [...["-map", `[a${index}]`, ...audioEncoder(one, spec)], ...segmentWriter(join(outDir, one.name), cuts(spec))];
}

/** The encoder of a rendition. */
export const audioEncoder = (one: PlannedAudio, { audio }: EncodingSpec): string[] =>
  audioCodecs[audio.codec].encoderArguments({
    ...audio,
    channels: one.channels,
    bitrate: audioBitrate(one, { audio }),
  });

type CopyOptions = {
  input: string;
  outDir: string;
  plan: EncodePlan;
  chunk: { first_frame: number; end_frame: number | null };
} & Pick<ArgumentOptions, "additional" | "isWithoutRepeats">;

/** Arguments of the run that copies the packets of a range of frames, cut at each keyframe. */
export function copyArguments({ input, outDir, plan: { video }, chunk, ...copy }: CopyOptions): string[] {
  const [top] = video?.renditions ?? [];
  if (!video || !top) return [];
  const { first_frame: from, end_frame: end } = chunk;
  const seconds = (from * video.rate.den) / video.rate.num;
  return [
    ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning", "-xerror"],
    ...["-progress", "pipe:1", "-nostats", "-stats_period", "0.5"],
    ...(from > 0 ? ["-noaccurate_seek", "-ss", seconds.toFixed(6)] : []),
    ...untrustedInput(input),
    ...copied(video, copy.additional, copy.isWithoutRepeats),
    // No frame before a keyframe is stored after it.
    ...(end === null ? [] : ["-frames:v", String(end - from)]),
    ...segmentWriter(join(outDir, top.name), EACH_KEYFRAME),
  ];
}

/** The cuts of a run over the whole source are at other distances from the start of a range. */
const EACH_KEYFRAME = ["-seg_duration", "0.001", "-use_timeline", "1"];

/** The keyframes in a range, in seconds from its start. */
function keyTimesIn(range: FrameRange | undefined, times: readonly number[], { num, den }: Rate): readonly number[] {
  if (!range) return times;
  const { firstFrame, endFrame } = range;
  const start = (firstFrame * den) / num;
  const isIn = (frame: number) => frame >= firstFrame && (endFrame === null || frame < endFrame);
  return times.filter((time) => isIn(Math.round((time * num) / den))).map((time) => time - start);
}

const cuts = ({ segment_seconds }: EncodingSpec) => ["-seg_duration", String(segment_seconds), "-use_timeline", "0"];

/**
 * A range does not start at n x 4 s but up to one frame later, so its segments may last one frame less. With a timeline
 * the muxer measures each segment from its own start, and this difference does not add up.
 */
const rangeCuts = (
  { segment_seconds }: EncodingSpec,
  { passthrough, rate: { num, den } }: NonNullable<EncodePlan["video"]>,
) =>
  passthrough
    ? EACH_KEYFRAME
    : [...["-seg_duration", (segment_seconds - (1.05 * den) / num).toFixed(6)], ...["-use_timeline", "1"]];

/**
 * One muxer per rendition, each in its own directory. A shared muxer would cut audio where it cuts video, and audio
 * after the end of the video would become one long last segment.
 */
function segmentWriter(folder: string, cutting: readonly string[]): string[] {
  return [
    // The metadata of phone videos contains places and people.
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-t", String(MAX_DURATION_SECONDS)],
    // An audio track whose first packet arrives late delays all others until the headers can be written.
    ...["-max_muxing_queue_size", "16384"],
    // With a template and no timeline the muxer cuts at n x 4 s from the start. With a timeline it requires each
    // segment to last 4 s, so at 29.97 frames per second it occasionally skips a cut. The template also keeps the
    // muxer's own manifest, rewritten at every segment, at a constant size.
    ...["-f", "dash", "-use_template", "1", ...cutting],
    ...["-init_seg_name", INIT_NAME, "-media_seg_name", SEGMENT_TEMPLATE],
    // Edit lists remove the delay of B-frames and of the audio encoder, as CMAF's brand cmfc specifies. The alternative,
    // negative composition offsets (cmf2), makes every ffmpeg-based player show frames two frames late.
    ...["-format_options", "brand=cmfc"],
    `file:${join(folder, MUXER_MANIFEST)}`,
  ];
}
