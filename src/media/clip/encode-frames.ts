import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { INIT_NAME, MUXER_MANIFEST } from "../arguments.ts";
import { videoCodecs } from "../codecs/registry.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { MediaError } from "../error.ts";
import { type Binaries, run, type SourceRun, untrustedInput } from "../ffmpeg.ts";
import { readInit } from "../isobmff.ts";
import { chooseRate, planLadder, reducedRate } from "../ladder.ts";
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
 * Encodes some frames of a group as the rendition was encoded. Their times are those of the encoder. With `isForeign` they
 * get parameter sets with ids of their own and no B-frames, so that they fit between samples of any encoder. Throws
 * MediaError.
 */
export async function encodeFrames(
  group: Group,
  { from, count }: Frames,
  { spec, binaries, run: common }: Encoding,
  { isForeign }: { isForeign: boolean },
): Promise<EncodedFrames> {
  const dir = await mkdtemp(join(common.cwd, "frames-"));
  try {
    const input = join(dir, "group.mp4");
    await writeFile(input, playable(group));
    const out = join(dir, "out");
    await mkdir(out);
    const rate = rateOf(group, spec);
    const filters = [
      // One frame is the unit of time after `fps`, as in the encode of the whole source.
      ...[`setpts=N*${rate.den}/${rate.num}/TB`, `fps=${rate.num}/${rate.den}:start_time=0`],
      ...[`trim=start_frame=${from}:end_frame=${from + count}`, `setpts=PTS-${from}`],
      ...["setsar=1", `format=${spec.video.pixel_format}`],
    ];
    await run(binaries.ffmpeg, {
      ...common,
      reads: [],
      timeLimitMs: TIME_LIMIT_MS,
      args: [
        ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning", "-noautorotate"],
        ...untrustedInput(input),
        ...["-map", "0:v:0", "-vf", filters.join(","), ...encoder(group, spec, isForeign), "-map_metadata", "-1"],
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
    const init = await readFile(join(out, INIT_NAME));
    const samples = readSamples(await readFile(join(out, SEGMENT)), readDefaults(init));
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

function encoder(group: Group, spec: EncodingSpec, isForeign: boolean): string[] {
  const { width, height } = readInit(group.init);
  // The caps depend on the size and the frame rate only.
  const [limits] = planLadder(width, height, rateOf(group, spec), spec);
  if (!limits) throw new ClipImpossible("no rendition has its size");
  const codec = videoCodecs[spec.video.codec];
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
