import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { type BitrateLimits, codecOfSampleEntry, reducedRate, videoCodecs } from "#lib/codecs";
import { readColors, readHdrBoxes, readInit, sampleEntryOf } from "#lib/isobmff";
import { INIT_NAME, MUXER_MANIFEST } from "../arguments.ts";
import type { AdditionalVideo, EncodingSpec } from "../encoding-spec.ts";
import { MediaError } from "../error.ts";
import { type Binaries, run, type SourceRun, untrustedInput } from "../ffmpeg.ts";
import { chooseRate, planLadder, titleLadder } from "../ladder.ts";
import { additionalTitle, settingsFor } from "../plan.ts";
import { requireAdditionalEncoders } from "../require-encoder.ts";
import { makeFolder, readResult, writeResult } from "../results.ts";
import { type Defaults, readDefaults, readSamples, type Sample, writeSegment } from "./fragments.ts";
import { ClipImpossible } from "./impossible.ts";
import { freeId, profileOf } from "./parameter-sets.ts";

export type Encoding = { spec: EncodingSpec; binaries: Binaries; run: SourceRun };
/** A GOP: samples in the order of decoding, the first one a keyframe. */
export type Group = { init: Buffer; defaults: Defaults; samples: readonly Sample[] };
/** Frames of a group, in the order of presentation. */
export type Frames = { from: number; count: number };
export type EncodedFrames = { init: Buffer; samples: Sample[] };

const TIME_LIMIT_MS = 10 * 60_000;
const SEGMENT = "frames.m4s";
/** Frames between keyframes, and seconds between segments: more than a group has. */
const NEVER = { frames: "100000", seconds: "2000" };

/**
 * Encodes some frames of a group as the rendition was encoded, with the HDR metadata of its init segment. The encoder
 * determines their times. `isForeign`: for a rendition of another encoder, whose parameter sets ours does not write. Frames of
 * H.264 then get parameter sets with ids of their own and no B-frames, so that they fit between samples of any encoder; frames in
 * other codecs are encoded without properties that decoders add. Throws MediaError.
 */
export async function encodeFrames(
  group: Group,
  { from, count }: Frames,
  encoding: Encoding,
  { isForeign }: { isForeign: boolean },
): Promise<EncodedFrames> {
  const { spec, binaries, run: common } = encoding;
  const dir = await mkdtemp(join(common.cwd, "frames-"));
  try {
    const input = join(dir, "group.mp4");
    await writeResult(input, playable(group));
    const out = join(dir, "out");
    await makeFolder(out);
    const rate = rateOf(group, spec);
    const { options, filters: last } = await encoderFor(group, encoding, isForeign);
    const filters = [
      // One frame is the unit of time after `fps`, as in the encode of the whole source.
      ...[`setpts=N*${rate.den}/${rate.num}/TB`, `fps=${rate.num}/${rate.den}:start_time=0`],
      ...[`trim=start_frame=${from}:end_frame=${from + count}`, `setpts=PTS-${from}`],
      ...["setsar=1", ...last],
    ];
    await run(binaries.ffmpeg, {
      ...common,
      reads: [],
      timeLimitMs: TIME_LIMIT_MS,
      args: [
        ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning", "-noautorotate"],
        ...untrustedInput(input),
        ...["-map", "0:v:0", "-vf", filters.join(","), ...options, "-map_metadata", "-1"],
        ...[
          "-g",
          NEVER.frames,
          "-f",
          "dash",
          "-use_template",
          "1",
          "-use_timeline",
          "0",
          "-seg_duration",
          NEVER.seconds,
        ],
        ...["-init_seg_name", INIT_NAME, "-media_seg_name", SEGMENT, "-format_options", "brand=cmfc"],
        `file:${join(out, MUXER_MANIFEST)}`,
      ],
    });
    const init = await readResult(join(out, INIT_NAME));
    const samples = readSamples(await readResult(join(out, SEGMENT)), readDefaults(init));
    if (samples.length !== count)
      throw new MediaError("encode_failed", `${samples.length} frames were encoded instead of ${count}.`, false);
    return { init, samples };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The group as a file of its own. Its times begin at 0. */
function playable({ init, defaults, samples }: Group): Buffer {
  const { timescale, delay } = readInit(init);
  const start = samples[0]?.dts ?? 0;
  const moved = samples.map((one) => ({ ...one, dts: one.dts - start, cts: one.cts - start }));
  const { trackId } = defaults;
  return Buffer.concat([init, writeSegment(moved, { trackId, timescale, sequence: 1, start: Math.max(0, delay) })]);
}

function rateOf({ init, samples }: Group, spec: EncodingSpec) {
  const ticks = samples.reduce((sum, { duration }) => sum + duration, 0);
  const rate = reducedRate({ num: readInit(init).timescale * samples.length, den: ticks });
  return chooseRate(rate, rate, spec);
}

/** ffmpeg's options for the encoder, and filters for what it takes. */
type Encoder = { options: string[]; filters: string[] };

async function encoderFor(group: Group, encoding: Encoding, isForeign: boolean): Promise<Encoder> {
  const entry = sampleEntryOf(group.init);
  const codec = entry && codecOfSampleEntry(entry.type)?.name;
  const { video } = encoding.spec;
  return codec === video.codec
    ? { options: primaryEncoder(group, encoding.spec, isForeign), filters: [`format=${video.pixel_format}`] }
    : additionalEncoder(group, String(codec), encoding, isForeign);
}

function primaryEncoder(group: Group, spec: EncodingSpec, isForeign: boolean): string[] {
  const codec = videoCodecs[spec.video.codec];
  const limits = limitsOf(group, spec, null);
  const common = codec.encoderArguments.software(limits, { ...spec.video, isContinued: !isForeign });
  if (!isForeign) return common;
  const { profile, level, lengthBytes } = profileOf(group.init);
  if (lengthBytes !== 4) throw new ClipImpossible("its frames have lengths of another size");
  // The last one of an option counts.
  return [
    ...[...common, "-profile:v", profile, "-level", level, "-bf", "0"],
    ...codec.foreignArguments(freeId(group.init)),
  ];
}

async function additionalEncoder(
  group: Group,
  name: string,
  { spec, binaries, run: common }: Encoding,
  isForeign: boolean,
): Promise<Encoder> {
  const stated = spec.video.additional?.find(({ codec }) => codec === name);
  if (!stated) throw new ClipImpossible(`it has ${name}, but not its encoding profile; use the mode instant`);
  const { hdr } = readInit(group.init);
  const settings = settingsFor(stated, hdr);
  await requireAdditionalEncoders(
    binaries.ffmpeg,
    { additional: [{ settings, hdr }] },
    { ...common, reads: [], writes: [] },
  );
  const metadata = hdr ? readHdrBoxes(group.init) : undefined;
  // Not with a decoder's buffer that is half full, as H.264: then the last frames of a run of HEVC had 26 instead of 41 dB,
  // although all of them took a tenth of the buffer.
  const own = { ...settings, hdr: metadata };
  return {
    options: videoCodecs[settings.codec].encoderArguments.software(limitsOf(group, spec, settings), own),
    filters: [`format=${settings.pixel_format}`, ...(isForeign ? withoutProperties(group, spec, settings) : [])],
  };
}

/**
 * Frames with the colors that the init segment states, and no other properties. A decoder sets a position of chroma also
 * where the stream states none, as after sources of RGB and VP9; the encoder would then state it.
 */
function withoutProperties(group: Group, spec: EncodingSpec, { pixel_format }: AdditionalVideo): string[] {
  const { width, height, colors } = readColors(group.init);
  const { num, den } = rateOf(group, spec);
  const ground = `color=c=black:s=${width}x${height}:r=${num}/${den},format=${pixel_format},setsar=1[ground]`;
  // The frames of `overlay` have the properties of those below.
  const format = pixel_format === "yuv420p" ? "yuv420" : "yuv420p10";
  const tags = colors && [
    ...[`colorspace=${colors.matrix}`, `color_primaries=${colors.primaries}`, `color_trc=${colors.transfer}`],
    `range=${colors.isFullRange ? "pc" : "tv"}`,
  ];
  return [
    `null[group];${ground};[ground][group]overlay=shortest=1:format=${format}`,
    ...(tags ? [`setparams=${tags.join(":")}`] : []),
  ];
}

/** The limits of the rendition: those that were chosen for its source, or of the ladder for its size and frame rate. */
function limitsOf(group: Group, spec: EncodingSpec, additional: AdditionalVideo | null): BitrateLimits {
  const { width, height } = readInit(group.init);
  const { title } = spec.video;
  const size = title && ([title.source_width, title.source_height, spec] as const);
  const chosen = size && (additional ? additionalTitle(...size, additional) : titleLadder(...size));
  const ladder = additional ? { ...spec, video: { ...spec.video, ladder: additional.ladder } } : spec;
  const limits =
    chosen?.find((one) => one.width === width && one.height === height) ??
    planLadder(width, height, rateOf(group, spec), ladder)[0];
  if (!limits) throw new ClipImpossible("no rendition has its size");
  return limits;
}
