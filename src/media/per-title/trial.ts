import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Encoder, usesDevices } from "#lib/codecs";
import { encodeArguments, type FrameRange, INIT_NAME, KEPT_FILTERS, seek, videoGraph } from "../arguments.ts";
import type { EncodingSpec } from "../encoding-spec.ts";
import { run, type SourceRun, untrustedInput } from "../ffmpeg.ts";
import type { PlannedRendition } from "../ladder.ts";
import { prepareFolders, readWritten, type Written } from "../package.ts";
import type { EncodePlan } from "../plan.ts";
import { makeFolder, readResult, writeResult } from "../results.ts";
import { watermarkInput } from "../watermark.ts";
import type { Measured } from "./score.ts";

export type TrialOptions = {
  input: string;
  /** The plan of the source, with the ladder. */
  plan: EncodePlan & { video: NonNullable<EncodePlan["video"]> };
  spec: EncodingSpec;
  ffmpeg: string;
  run: SourceRun;
  encoder?: Encoder | undefined;
  /** Absolute path of the image of the specification's watermark. */
  watermark?: string | undefined;
  /** Private, inside of the working directory of `run`. */
  workDir: string;
};

/** What a sample takes and gives in one rendition. */
export type Trial = Measured & {
  /** bit/s, with one keyframe for each GOP. */
  bits: number;
};

const TIME_LIMIT_MS = 10 * 60_000;
const STALL_MS = 2 * 60_000;
/**
 * The rate without a cap shows how far a rung exceeds its own, and the encoder of H.264 is only deterministic where it does
 * not reach one. In bit/s: the most that SVT-AV1 accepts.
 */
const UNCAPPED = 100_000_000;
/** Each such frame is compared: no multiple of the distance of P-frames, so that frames of all types are. */
const EVERY = 3;

/** The most pixels of all renditions of a run, about twice 1080p. With more, one process would need several times the memory. */
const MOST_PIXELS = 8_000_000;

/**
 * Encodes a range of the source as each of `renditions` at each of `steps`, which are added to its CRF, as chunks are encoded, and
 * compares the results with the source at the size of the first rendition. Returns them by step and then by rendition; null when
 * the range has no frames. Throws MediaError.
 */
export async function tryRange(
  range: FrameRange,
  steps: readonly number[],
  options: TrialOptions,
): Promise<Trial[][] | null> {
  const { workDir, plan } = options;
  const { renditions } = plan.video;
  const nameOf = (index: number, step: number) => `${index}-${step}`;
  // By size: each is scaled from the one before it.
  const all = renditions.flatMap((one, index) =>
    steps.map((step) => ({ ...one, name: nameOf(index, step), step, crf: one.crf + step })),
  );
  const pixels = all.reduce((sum, { width, height }) => sum + width * height, 0);
  const runs = pixels <= MOST_PIXELS ? [all] : steps.map((step) => all.filter((one) => one.step === step));
  await makeFolder(workDir);
  try {
    const written: Written[] = [];
    for (const one of runs) written.push(...((await encodeTrials(range, one, options)) ?? []));
    if (written.length < all.length) return null;
    const paths: string[] = [];
    for (const one of written) paths.push(await asFile(workDir, one));
    const measured = await compare(range, paths, options);
    if (!measured) return null;
    const trials = new Map(
      written.map((one, at) => [one.name, { ...(measured[at] as Measured), bits: bitrateOf(one, options) }]),
    );
    return steps.map((step) => renditions.map((_, index) => trials.get(nameOf(index, step)) as Trial));
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
}

/** Null when the range has no frames. */
async function encodeTrials(
  range: FrameRange,
  given: readonly PlannedRendition[],
  { input, plan, spec, ffmpeg, run: common, encoder = "software", watermark, workDir }: TrialOptions,
): Promise<Written[] | null> {
  const renditions = given.map((one) => ({
    ...one,
    maxBitrate: UNCAPPED,
    buffer: UNCAPPED,
  }));
  const trial = { ...plan, audio: [], video: { ...plan.video, renditions, passthrough: null, holdUntilSeconds: 0 } };
  await prepareFolders(workDir, trial);
  await run(ffmpeg, {
    ...common,
    writes: [],
    reads: [...(common.reads ?? []), ...(watermark ? [watermark] : [])],
    args: encodeArguments({ input, outDir: workDir, plan: trial, whole: plan, spec, encoder, range, watermark }),
    devices: usesDevices(encoder),
    timeLimitMs: TIME_LIMIT_MS,
    stallMs: STALL_MS,
  });
  const written: Written[] = [];
  for (const { name } of renditions) {
    const one = await readWritten(workDir, name);
    if (!one) return null;
    written.push(one);
  }
  return written;
}

/** The segments of a rendition as one file. */
async function asFile(dir: string, { name, segments }: Written): Promise<string> {
  const path = join(dir, `${name}.mp4`);
  const parts: Buffer[] = [];
  for (const file of [INIT_NAME, ...segments.map((one) => one.name)])
    parts.push(await readResult(join(dir, name, file)));
  await writeResult(path, Buffer.concat(parts));
  return path;
}

/** A sample is shorter than a GOP: its keyframe counts once per GOP, its other frames as often as there are. */
function bitrateOf({ segments }: Written, { spec, plan }: TrialOptions): number {
  const bytes = segments.reduce((sum, one) => sum + one.bytes, 0);
  const seconds = segments.reduce((sum, one) => sum + one.durationSeconds, 0);
  const key = segments.reduce((sum, { first }) => sum + (first?.bytes ?? 0), 0);
  const frame = plan.video.rate.den / plan.video.rate.num;
  const others = seconds > 1.5 * frame ? ((bytes - key) / (seconds - frame)) * (spec.gop_seconds - frame) : 0;
  return ((key / Math.max(1, segments.length) + others) * 8) / spec.gop_seconds;
}

/** The lines with which the filters `ssim` and `psnr` end; the numbers are those of the luma. */
const SSIM = /^\[ssim@s(\d{1,3}) @ [^\]]{1,40}\] SSIM Y:(\d\.\d{1,20})/;
const PSNR = /^\[psnr@p(\d{1,3}) @ [^\]]{1,40}\] PSNR y:(inf|\d{1,4}\.\d{1,20})/;

/** Null when there were no frames to compare. */
async function compare(
  range: FrameRange,
  paths: readonly string[],
  { input, plan, spec, ffmpeg, run: common, watermark }: TrialOptions,
): Promise<Measured[] | null> {
  const [top] = plan.video.renditions;
  if (!top) return null;
  const only = {
    ...plan,
    audio: [],
    video: { ...plan.video, renditions: [top], passthrough: null, holdUntilSeconds: 0 },
  };
  const marked = watermark ? watermarkInput(watermark) : [];
  const first = marked.length > 0 ? 2 : 1;
  // Frames are paired by their number.
  const numbered = `select='not(mod(n,${EVERY}))',settb=1/1000,setpts=N`;
  const copies = paths.flatMap((_, index) => [`[r${index}]`, `[q${index}]`]);
  const graph = [
    videoGraph(only, { input, outDir: "", plan: only, spec, range, watermark }, "software"),
    `[v0]${numbered},split=${copies.length}${copies.join("")}`,
    ...paths.flatMap((_, index) => [
      `[${first + index}:v]${numbered},scale=${top.width}:${top.height}:flags=bicubic[d${index}]`,
      `[d${index}][r${index}]ssim@s${index}[c${index}]`,
      `[c${index}][q${index}]psnr@p${index}[o${index}]`,
    ]),
  ];
  const ssim = new Map<number, number>();
  const psnr = new Map<number, number>();
  await run(ffmpeg, {
    ...common,
    writes: [],
    reads: [...(common.reads ?? []), ...(watermark ? [watermark] : [])],
    args: [
      ...["-nostdin", "-hide_banner", "-loglevel", "info", "-progress", "pipe:1", "-nostats", "-noautorotate"],
      ...[...seek(range, plan.video.rate), ...KEPT_FILTERS, ...untrustedInput(input), ...marked],
      ...paths.flatMap((path) => ["-threads", "1", "-protocol_whitelist", "file", "-f", "mov", "-i", `file:${path}`]),
      ...["-filter_complex", graph.join(";")],
      ...paths.flatMap((_, index) => ["-map", `[o${index}]`, "-f", "null", "-"]),
    ],
    timeLimitMs: TIME_LIMIT_MS,
    stallMs: STALL_MS,
    onLog: (line) => {
      const [, ssimOf, value] = SSIM.exec(line) ?? [];
      if (ssimOf !== undefined) ssim.set(Number(ssimOf), Number(value));
      const [, psnrOf, decibels] = PSNR.exec(line) ?? [];
      if (psnrOf !== undefined)
        psnr.set(Number(psnrOf), decibels === "inf" ? Number.POSITIVE_INFINITY : Number(decibels));
    },
  });
  const measured = paths.flatMap((_, index) => {
    const one = ssim.get(index);
    const other = psnr.get(index);
    return one === undefined || other === undefined ? [] : [{ ssim: one, psnr: other }];
  });
  return measured.length === paths.length ? measured : null;
}
