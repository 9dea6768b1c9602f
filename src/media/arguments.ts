import { join } from "node:path";
import { type Encoder, encoderOf } from "./encoders.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { untrustedInput } from "./ffmpeg.ts";
import type { PlannedRendition, Rate } from "./ladder.ts";
import { type EncodePlan, MAX_DURATION_SECONDS, type PlannedAudio } from "./plan.ts";

/** 8192 x 8192: 8K and VR pass, a picture that claims a terabyte of memory does not. */
const MAX_PIXELS = 8192 * 8192;

export const INIT_NAME = "init.mp4";
export const SEGMENT_TEMPLATE = "$Number%05d$.m4s";
export const SEGMENT_PATTERN = /^\d{5,}\.m4s$/;
/** The muxer insists on a manifest; ours replace it. */
export const MUXER_MANIFEST = "muxer.mpd";

type ArgumentOptions = {
  input: string;
  outDir: string;
  plan: EncodePlan;
  spec: EncodingSpec;
  encoder?: Encoder | undefined;
};

/**
 * The arguments of the one ffmpeg run that makes everything: the source is decoded once, each size is scaled from
 * the one above it, and every rendition is its own segment writer. One run took 50.5 s where a run per rendition
 * for HLS and another for DASH took 137.
 */
export function encodeArguments(options: ArgumentOptions): string[] {
  const { input, outDir, plan, spec, encoder = "software" } = options;
  return [
    ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning"],
    ...["-progress", "pipe:1", "-nostats", "-stats_period", "0.5"],
    // The turn is made by our own filter, so that sizes always agree with the plan.
    ...["-noautorotate", "-max_pixels", String(MAX_PIXELS)],
    // What is copied must be free of faults, and the decoder is what finds them.
    ...(plan.video?.passthrough ? ["-xerror", "-err_detect", "explode"] : []),
    ...encoderOf(encoder).global,
    ...untrustedInput(input),
    ...graphArguments(filterGraph(plan, spec, encoder)),
    ...(plan.video?.renditions.flatMap((one) => videoOutput(one, plan, options)) ?? []),
    ...plan.audio.flatMap((one) => audioOutput(one, spec, outDir)),
  ];
}

/** Nothing is decoded where all is copied. */
const graphArguments = (graph: string) => (graph ? ["-filter_complex", graph] : []);

/** Those that an encoder makes. */
const encodedOf = ({ renditions, passthrough }: NonNullable<EncodePlan["video"]>) =>
  passthrough?.isCopied ? renditions.slice(1) : renditions;

function filterGraph({ video, audio }: EncodePlan, spec: EncodingSpec, encoder: Encoder): string {
  const chains: string[] = [];
  if (video) {
    const { track, rate, holdUntilSeconds } = video;
    const renditions = encodedOf(video);
    const [top] = renditions;
    if (!top) return soundGraph(audio, spec).join(";");
    const filters = [
      ...(track.isInterlaced ? ["bwdif=mode=send_frame:deint=interlaced"] : []),
      ...{ 0: [], 90: ["transpose=clock"], 180: ["transpose=clock", "transpose=clock"], 270: ["transpose=cclock"] }[
        track.rotation
      ],
      // One grid from 0 on, whatever the source's timestamps do: segments of all renditions start at the same frames.
      `fps=${rate.num}/${rate.den}:start_time=0`,
      scale(top),
      ...(track.isHdr ? TONE_MAP : []),
      `format=${spec.video.pixel_format}`,
    ];
    const sized = `[0:${track.index}]${filters.join(",")}`;
    let from = holdUntilSeconds ? hold(sized, top, rate, holdUntilSeconds) : sized;
    const last = encoderOf(encoder)
      .filters.map((filter) => `,${filter}`)
      .join("");
    for (const [index, next] of [...renditions.slice(1), null].entries()) {
      if (!next) chains.push(`${from}${last}[v${index}]`);
      else if (last) chains.push(`${from},split=2[p${index}][s${index}]`, `[p${index}]${last.slice(1)}[v${index}]`);
      else chains.push(`${from},split=2[v${index}][s${index}]`);
      if (next) from = `[s${index}]${scale(next)}`;
    }
  }
  return [...chains, ...soundGraph(audio, spec)].join(";");
}

const soundGraph = (audio: EncodePlan["audio"], spec: EncodingSpec): string[] =>
  audio.flatMap(({ track, padToSeconds, isCopied }, index) => {
    if (isCopied) return [];
    const pad = padToSeconds ? `,apad=whole_dur=${padToSeconds.toFixed(3)}` : "";
    // async fills gaps with silence and first_pts a late start, so that the sound stays where the picture is.
    const resample = `aresample=${spec.audio.sample_rate}:async=1:first_pts=0`;
    return `[0:${track.index}]${resample},aformat=sample_fmts=fltp:channel_layouts=stereo${pad}[a${index}]`;
  });

const scale = ({ width, height }: PlannedRendition) => `scale=${width}:${height}:flags=bicubic,setsar=1`;

/** Laid over a black picture that lasts as long as the sound, the last picture stays until the end. */
const hold = (chain: string, { width, height }: PlannedRendition, rate: Rate, endSeconds: number) =>
  `color=c=black:s=${width}x${height}:r=${rate.num}/${rate.den}:d=${endSeconds.toFixed(3)},setsar=1[ground];${chain}[short];[ground][short]overlay=eof_action=repeat`;

/** PQ or HLG to BT.709: to linear light, into the smaller gamut, bright parts rolled off, back to a display's curve. */
const TONE_MAP = [
  "zscale=t=linear:npl=100",
  "format=gbrpf32le",
  "zscale=p=bt709",
  "tonemap=tonemap=hable:desat=0",
  "zscale=t=bt709:m=bt709:r=tv",
];

function videoOutput(
  one: PlannedRendition,
  { video }: EncodePlan,
  { spec, outDir, encoder = "software" }: ArgumentOptions,
): string[] {
  if (!video) return [];
  const index = encodedOf(video).indexOf(one);
  if (index < 0)
    return ["-map", `0:${video.track.index}`, "-c:v", "copy", ...segmentWriter(join(outDir, one.name), spec)];
  const framesPerGop = Math.ceil((video.rate.num / video.rate.den) * spec.gop_seconds);
  return [
    ...["-map", `[v${index}]`, ...encoderOf(encoder).output(one, spec)],
    // Key frames come from the clock alone. A frame count would drift from it at 23.976, and a cut would put one
    // where other renditions have none; -g only has to stay out of the way.
    "-force_key_frames",
    video.passthrough
      ? timesBefore(video.passthrough.keyTimes, video.rate)
      : `expr:gte(t,n_forced*${spec.gop_seconds})`,
    ...["-g", String(framesPerGop * 4)],
    ...segmentWriter(join(outDir, one.name), spec),
  ];
}

/** Each a quarter of a frame early: the frame at or after it is the one that is meant, however times are rounded. */
const timesBefore = (times: readonly number[], { num, den }: Rate) =>
  times.map((seconds) => Math.max(0, seconds - den / num / 4).toFixed(4)).join(",");

function audioOutput(one: PlannedAudio, spec: EncodingSpec, outDir: string): string[] {
  const { bitrate, channels, coder, sample_rate } = spec.audio;
  if (one.isCopied) {
    const source = ["-map", `0:${one.track.index}`];
    // The first packets lie before 0, and are what an edit list takes out again. Decoded to nowhere, since what is
    // copied must be free of faults.
    return [
      ...[...source, "-c:a", "copy", "-copypriorss", "1", ...segmentWriter(join(outDir, one.name), spec)],
      ...[...source, "-c:a", "pcm_s16le", "-f", "null", "-"],
    ];
  }
  const index = one.name === "audio" ? 0 : Number(one.name.slice("audio-".length)) - 1;
  return [
    ...[
      "-map",
      `[a${index}]`,
      "-c:a",
      "aac",
      "-aac_coder",
      coder,
      "-b:a",
      String(bitrate),
      "-ac",
      String(channels),
      "-ar",
      String(sample_rate),
    ],
    ...segmentWriter(join(outDir, one.name), spec),
  ];
}

/**
 * A writer per rendition, in a folder of its own. In one shared writer the sound would be cut where the picture is,
 * and what sounds on after the picture's end would all become one last segment.
 */
function segmentWriter(folder: string, spec: EncodingSpec): string[] {
  return [
    // Places and people are in the metadata of phone videos.
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-t", String(MAX_DURATION_SECONDS)],
    // An audio track whose first packet comes late holds back all others until the headers can be written.
    ...["-max_muxing_queue_size", "16384"],
    // With a template and no timeline the muxer cuts at n x 4 s from the start. With a timeline it wants each
    // segment to last 4 s, which makes 29.97 frames per second skip a cut now and then. It also keeps the muxer's
    // own manifest, rewritten at every segment, at a constant size.
    ...["-f", "dash", "-seg_duration", String(spec.segment_seconds), "-use_template", "1", "-use_timeline", "0"],
    ...["-init_seg_name", INIT_NAME, "-media_seg_name", SEGMENT_TEMPLATE],
    // Edit lists take out the delay of B-frames and of the AAC encoder, as CMAF's brand cmfc has it. The other way,
    // negative composition offsets (cmf2), makes every player built on ffmpeg show pictures two frames late.
    ...["-format_options", "brand=cmfc"],
    `file:${join(folder, MUXER_MANIFEST)}`,
  ];
}
