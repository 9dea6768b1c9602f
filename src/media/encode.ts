import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeArguments } from "./arguments.ts";
import { copyAudio } from "./audio-copy.ts";
import type { Encoder } from "./encoders.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { type Binaries, run, type SourceRun } from "./ffmpeg.ts";
import { type Rendition, writeManifests } from "./manifests.ts";
import { prepareFolders, readWritten } from "./package.ts";
import { findPassthrough } from "./passthrough.ts";
import { type EncodePlan, planEncode } from "./plan.ts";
import type { Probe } from "./probe.ts";
import { writeStaticMp4 } from "./static-mp4.ts";
import { writeStoryboard } from "./storyboard.ts";
import { writeThumbnail } from "./thumbnail.ts";

export type EncodeOptions = {
  /** Absolute path of the source. */
  input: string;
  /** Absolute; made if it is not there. What an earlier attempt left in it should be gone. */
  outDir: string;
  probe: Probe;
  spec: EncodingSpec;
  binaries: Binaries;
  /** 0 to 1; not called when the source does not say how long it is. */
  onProgress?: (fraction: number) => void;
  /**
   * Called once with what plays already, as soon as one rendition is whole; its files stay as they are. Without it
   * nothing is made twice for the sake of haste.
   */
  onEarly?: (result: EncodeResult) => Promise<void>;
  signal?: AbortSignal;
  /** Where ffmpeg's working folder is made; the system's temporary folder unless given. */
  scratchDir?: string;
  pidDir?: string;
  /** The most that one ffmpeg may allocate. */
  memoryBytes?: number | undefined;
  /** Software unless told. */
  encoder?: Encoder | undefined;
  /** File names in `outDir`, where they are not the specification's. */
  names?: { manifest?: string; dash?: string; thumbnail?: string; storyboard?: string; mp4?: string };
};

export type EncodeResult = {
  /** File names in `outDir`. */
  manifest: string;
  dash: string;
  thumbnail: string;
  /** Null for sound alone, where the specification wants none, and where none could be made. */
  storyboard: string | null;
  /** Null where it was not asked for, and for sound alone. */
  mp4: string | null;
  /** Of the largest rendition; null for sound alone. */
  width: number | null;
  height: number | null;
  durationSeconds: number;
  frameRate: number | null;
  renditions: Rendition[];
  /** Every file that was written, relative to `outDir`; the manifests last. */
  files: string[];
  bytes: number;
};

const STALL_MS = 5 * 60_000;
/** Eight renditions of 2160p60 at a preset of this kind run at well over a hundredth of real time anywhere. */
const timeLimitMs = (durationSeconds: number | null) => 3_600_000 + (durationSeconds ?? 24 * 3600) * 100_000;

/**
 * Encodes a source into CMAF segments with an HLS and a DASH manifest and a thumbnail, in one ffmpeg run and a bit.
 * Throws MediaError.
 */
export async function encode(options: EncodeOptions): Promise<EncodeResult> {
  const { outDir, probe, spec, binaries, signal } = options;
  const names = {
    manifest: options.names?.manifest ?? spec.hls.manifest,
    dash: options.names?.dash ?? spec.dash.manifest,
    thumbnail: options.names?.thumbnail ?? spec.thumbnail.name,
    storyboard: options.names?.storyboard ?? spec.storyboard.name,
    mp4: options.names?.mp4 ?? null,
  };
  const plan = planEncode(probe, spec);
  const cwd = await mkdtemp(join(options.scratchDir ?? tmpdir(), "encode-"));
  const common = {
    cwd,
    reads: [options.input],
    writes: [outDir],
    memoryBytes: options.memoryBytes,
    ...(signal && { signal }),
    ...(options.pidDir && { pidDir: options.pidDir }),
  };
  let furthest = 0;
  const onProgress = (fraction: number) => {
    // A second way begins anew, but nobody is told of a way back.
    if (fraction < furthest) return;
    furthest = fraction;
    options.onProgress?.(fraction);
  };
  const way: Way = { options: { ...options, onProgress }, names, common };
  try {
    const source = { input: options.input, probe, plan, spec, binaries, run: common };
    const passthrough = await findPassthrough(source);
    const chosen =
      passthrough && plan.video
        ? { ...plan, video: { ...plan.video, passthrough }, audio: await copyAudio(source) }
        : plan;
    if (options.onEarly && plan.video) return await encodeInTwo(chosen, plan, way);
    if (chosen === plan) return await encodeOnce(plan, way);
    try {
      return await encodeOnce(chosen, way);
    } catch (error) {
      // What turned out not to fit, a fault in the source or a cut elsewhere, is encoded like any other.
      if (!isOfSource(error)) throw error;
      await rm(outDir, { recursive: true, force: true });
      return await encodeOnce(plan, way);
    }
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/** And not of this machine, as a full disk is. */
const isOfSource = (error: unknown) =>
  error instanceof MediaError
    ? error.code === "input_invalid" || error.code === "encode_failed"
    : (error as NodeJS.ErrnoException).code === undefined;

type Way = {
  options: EncodeOptions;
  names: { manifest: string; dash: string; thumbnail: string; storyboard: string; mp4: string | null };
  common: SourceRun;
};

async function encodeOnce(plan: EncodePlan, way: Way): Promise<EncodeResult> {
  await pass(plan, way, { from: 0, to: 0.99 });
  return finish(plan, way);
}

/** How much of all work the smallest step is; the copy of a source is next to none. */
const EARLY_SHARE = 0.15;

/**
 * First one rendition with the sound, which is told, then the others. The smallest costs a second decoding; the
 * source's own picture costs nothing. What was told stays as it is: should the rest not fit to it, all is made anew
 * beside it.
 */
async function encodeInTwo(plan: EncodePlan, plain: EncodePlan, way: Way): Promise<EncodeResult> {
  const { options } = way;
  const { video } = plan;
  if (!video) return encodeOnce(plan, way);
  const early = video.passthrough ? video.renditions.slice(0, 1) : video.renditions.slice(-1);
  const others = video.renditions.filter((one) => !early.includes(one));
  const share = video.passthrough ? 0.01 : EARLY_SHARE;
  const first = { ...plan, video: { ...video, renditions: early } };
  try {
    await pass(first, way, { from: 0, to: share });
  } catch (error) {
    // Nothing is told yet: it is a source like any other.
    if (!video.passthrough || !isOfSource(error)) throw error;
    await rm(options.outDir, { recursive: true, force: true });
    return encodeInTwo(plain, plain, way);
  }
  const names = { ...way.names, manifest: `early-${way.names.manifest}`, dash: `early-${way.names.dash}`, mp4: null };
  const result = await finish(first, { ...way, names }, { isEarly: true });
  const told = options.onEarly?.(result);
  // Met again below; here it must not be nobody's.
  told?.catch(() => {});
  try {
    const passthrough = video.passthrough && { ...video.passthrough, isCopied: false };
    const rest = { ...plan, audio: [], video: { ...video, renditions: others, passthrough } };
    if (others.length > 0) await pass(rest, way, { from: share, to: 0.99 });
    const whole = await finish(plan, way);
    await told;
    return { ...whole, files: [...new Set([...result.files, ...whole.files])] };
  } catch (error) {
    if (!video.passthrough || !isOfSource(error)) throw error;
    await told;
    const renamed = <T extends { name: string }>(all: T[]) => all.map((one) => ({ ...one, name: `${one.name}-whole` }));
    const anew = plain.video && { ...plain.video, renditions: renamed(plain.video.renditions) };
    const whole = await encodeOnce({ ...plain, video: anew, audio: renamed(plain.audio) }, way);
    return { ...whole, files: [...new Set([...result.files, ...whole.files])] };
  }
}

/** One run of ffmpeg over the source. `share` is the part of the whole work that it is. */
async function pass(plan: EncodePlan, { options, common }: Way, share: { from: number; to: number }): Promise<void> {
  const { input, outDir, spec, binaries, encoder, onProgress } = options;
  await mkdir(outDir, { recursive: true });
  await prepareFolders(outDir, plan);
  await run(binaries.ffmpeg, {
    ...common,
    args: encodeArguments({ input, outDir, plan, spec, encoder }),
    devices: encoder !== undefined && encoder !== "software",
    timeLimitMs: timeLimitMs(plan.durationSeconds),
    stallMs: STALL_MS,
    onPosition: (seconds) => {
      if (!plan.durationSeconds) return;
      onProgress?.(share.from + Math.min(1, seconds / plan.durationSeconds) * (share.to - share.from));
    },
  });
}

/** Pictures and manifests over what was written; early, without what would take its time. */
async function finish(
  plan: EncodePlan,
  { options, names, common }: Way,
  { isEarly = false } = {},
): Promise<EncodeResult> {
  const { outDir, spec, binaries, onProgress } = options;
  const read = async (renditions: readonly { name: string }[]) =>
    (await Promise.all(renditions.map(({ name }) => readWritten(outDir, name)))).filter((one) => one !== null);
  const videos = await read(plan.video?.renditions ?? []);
  const audios = await read(plan.audio);
  if (videos.length + audios.length === 0) {
    throw new MediaError("input_invalid", "Nothing in the source could be decoded.", false);
  }
  const pictures = { outDir, spec, videos, ffmpeg: binaries.ffmpeg, run: common };
  const hasStoryboard = spec.storyboard.enabled && !isEarly;
  const storyboard = hasStoryboard ? await writeStoryboard({ ...pictures, name: names.storyboard }) : null;
  await writeThumbnail({ ...pictures, name: names.thumbnail, audios });
  const mp4Bytes = names.mp4 ? await writeStaticMp4({ ...pictures, name: names.mp4, audios }) : null;
  const packaged = await writeManifests({ outDir, plan, spec, videos, audios, names, storyboard });
  const [top] = packaged.renditions;
  if (!isEarly) onProgress?.(1);
  return {
    ...names,
    width: top?.width ?? null,
    height: top?.height ?? null,
    durationSeconds: Math.round(packaged.durationSeconds * 1000) / 1000,
    frameRate: top?.frame_rate ?? null,
    renditions: packaged.renditions,
    storyboard: storyboard?.name ?? null,
    mp4: mp4Bytes === null ? null : names.mp4,
    files: [
      ...packaged.files.slice(0, -2),
      names.thumbnail,
      ...(storyboard ? [storyboard.image, storyboard.name] : []),
      ...(names.mp4 && mp4Bytes !== null ? [names.mp4] : []),
      ...packaged.files.slice(-2),
    ],
    bytes:
      packaged.bytes + (await stat(join(outDir, names.thumbnail))).size + (storyboard?.bytes ?? 0) + (mp4Bytes ?? 0),
  };
}
