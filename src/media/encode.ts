import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Encoders, encoderFor, type HdrMetadata, NO_HDR_METADATA, usesDevices } from "#lib/codecs";
import { CHANGED_FRAMES, encodeArguments, INIT_NAME, type KeptHdr } from "./arguments.ts";
import { copyAudio } from "./audio-copy.ts";
import { encodeTracks } from "./audio-tracks.ts";
import { inspectCopied } from "./copied-video.ts";
import type { AdditionalVideo, EncodingSpec } from "./encoding-spec.ts";
import { isSourceFault, MediaError } from "./error.ts";
import { type Binaries, run, type SourceRun, UNTIL_STALLED } from "./ffmpeg.ts";
import { type EncodeResult, endsEarly, type FileNames, fileNames, finish, type RequestedNames } from "./finish.ts";
import { addInitBoxes } from "./init-boxes.ts";
import { withGains } from "./loudness.ts";
import { unseenSeconds } from "./manifests.ts";
import { moveAudio } from "./moved-audio.ts";
import { prepareFolders, readWritten } from "./package.ts";
import { findPassthrough } from "./passthrough.ts";
import { withTitle } from "./per-title/analyze.ts";
import {
  ADDITIONAL_WORK,
  type AdditionalPlan,
  type EncodePlan,
  planAdditional,
  planEncode,
  withoutCopy,
  withPassthrough,
} from "./plan.ts";
import type { Probe } from "./probe.ts";
import { keptHdrMetadata } from "./read-hdr-metadata.ts";
import { requireAdditionalEncoders } from "./require-encoder.ts";
import { withoutJumps } from "./timeline/repair.ts";
import { undecodedTracks } from "./tracks.ts";
import { withoutUndecodable } from "./undecodable.ts";

export type EncodeOptions = {
  /** Absolute path of the source. */
  input: string;
  /** Absolute; created if missing. Must not contain files of an earlier attempt. */
  outDir: string;
  probe: Probe;
  spec: EncodingSpec;
  binaries: Binaries;
  /** 0 to 1; not called when the source does not state its duration. */
  onProgress?: (fraction: number) => void;
  /** The names of the renditions whose segments will be written, before each try. */
  onRenditions?: (names: string[]) => void;
  signal?: AbortSignal;
  /** Where ffmpeg's working directory is created; by default in the system's temporary directory. */
  scratchDir?: string;
  pidDir?: string;
  /** Called again and again while a run advances, also without progress: loudness is measured, for example. */
  onMove?: (() => void) | undefined;
  /** A line of ffmpeg's log, without paths of this machine. */
  onLog?: (line: string) => void;
  /** Memory limit of one ffmpeg process. */
  memoryBytes?: number | undefined;
  /** Software by default. */
  encoders?: Encoders | undefined;
  /** Absolute path of the image of the specification's watermark. */
  watermark?: string | undefined;
  /** File names in `outDir` that differ from those of the specification. */
  names?: RequestedNames;
};

/**
 * Encodes a source into CMAF segments with an HLS and a DASH manifest and a thumbnail, in one ffmpeg run, another one for
 * each additional codec, and short ones. Throws MediaError.
 */
export async function encode(options: EncodeOptions): Promise<EncodeResult> {
  const { scratchDir = tmpdir() } = options;
  const cwd = await mkdtemp(join(scratchDir, "encode-"));
  try {
    const { binaries } = options;
    const run = { ...sourceRunOf(options, cwd), writes: [] };
    const source = await withoutJumps(options, { binaries, run });
    return await encodeDecodable(cwd, { ...options, ...source, onProgress: upwards(options.onProgress) });
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/** Without the tracks of which the decoder returns nothing, when the encode fails. */
async function encodeDecodable(cwd: string, options: EncodeOptions): Promise<EncodeResult> {
  const { input, outDir, probe, binaries } = options;
  try {
    return await encodeIn(cwd, options);
  } catch (error) {
    // ffmpeg also fails when one of several tracks cannot be decoded.
    if (!isSourceFault(error)) throw error;
    const run = { ...sourceRunOf(options, cwd), writes: [] };
    const rest = await withoutUndecodable(probe, { input, binaries, run });
    if (!rest) throw error;
    await rm(outDir, { recursive: true, force: true });
    const result = await encodeIn(cwd, { ...options, probe: rest.probe });
    return { ...result, skipped: [...rest.skipped, ...result.skipped] };
  }
}

async function encodeIn(cwd: string, options: EncodeOptions): Promise<EncodeResult> {
  const { plan, copying, way } = await prepare(options, cwd);
  if (!copying) return encodeHeld(plan, way);
  try {
    return await encodeOnce(copying, way);
  } catch (error) {
    // A source that cannot be copied, because of faults or unaligned segments, is encoded like any other.
    if (!isOfSource(error)) throw error;
    await rm(options.outDir, { recursive: true, force: true });
    return encodeHeld(plan, way);
  }
}

/** Again with a last frame that is held, where the encode finds that the video ends before the audio: it is damaged. */
async function encodeHeld(plan: EncodePlan, way: Way): Promise<EncodeResult> {
  try {
    return await encodeOnce(plan, way);
  } catch (error) {
    if (!(error instanceof EndsEarly && plan.video)) throw error;
    await rm(way.options.outDir, { recursive: true, force: true });
    return encodeOnce({ ...plan, video: { ...plan.video, holdUntilSeconds: error.untilSeconds } }, way);
  }
}

/** The video ends before the audio, of which segments would be left out. */
class EndsEarly extends Error {
  /** When the audio ends. */
  readonly untilSeconds: number;

  constructor(untilSeconds: number) {
    super("The video of the source ends before its audio.");
    this.untilSeconds = untilSeconds;
  }
}

/** What is produced, and how. `copying`: the plan that copies what it can of a source, if there is one. */
type Prepared = { plan: EncodePlan; copying: EncodePlan | null; way: Way };

/** Reads the source, chooses the rungs if the specification says so, and plans the encode. `cwd`: of ffmpeg. */
async function prepare(options: EncodeOptions, cwd: string): Promise<Prepared> {
  const { input, probe, binaries, encoders, watermark } = options;
  const common = sourceRunOf(options, cwd);
  const report = (fraction: number) => options.onProgress?.(fraction);
  const source = { input, probe, binaries, run: common };
  const ladder = planEncode(probe, options.spec);
  const additional = planAdditional(ladder, options.spec);
  await requireAdditionalEncoders(binaries.ffmpeg, { additional, encoders }, { ...common, reads: [], writes: [] });
  const metadata = (await keptHdrMetadata(additional, source)) ?? NO_HDR_METADATA;
  const passthrough = await findPassthrough({ ...source, plan: ladder, spec: options.spec });
  let analyzed = 0;
  const spec = await withTitle({
    ...source,
    plan: ladder,
    spec: options.spec,
    passthrough,
    watermark,
    workDir: join(cwd, "trials"),
    encoder: encoderFor(encoders, options.spec.video.codec),
    // Samples take time too.
    onProgress: (fraction) => {
      analyzed = fraction * ANALYSIS_SHARE;
      report(analyzed);
    },
  });
  const onProgress = (fraction: number) => report(analyzed + fraction * (1 - analyzed));
  const names = fileNames(options.spec, options.names);
  const way = { options: { ...options, spec, onProgress }, names, common, metadata };
  const plan = spec === options.spec ? ladder : planEncode(probe, spec);
  if (!passthrough || !plan.video) return { plan, copying: null, way };
  const audio = await copyAudio({ ...source, plan, spec });
  return { plan, copying: { ...withPassthrough(plan, passthrough, spec), audio }, way };
}

const sourceRunOf = (options: EncodeOptions, cwd: string): SourceRun => ({
  cwd,
  reads: [options.input, ...(options.watermark ? [options.watermark] : [])],
  writes: [options.outDir],
  memoryBytes: options.memoryBytes,
  ...(options.signal && { signal: options.signal }),
  ...(options.pidDir && { pidDir: options.pidDir }),
  ...(options.onLog && { onLog: options.onLog }),
  onMove: options.onMove,
});

/** A second run over a source starts again from 0, but reported progress does not go backwards. */
function upwards(report: EncodeOptions["onProgress"]): (fraction: number) => void {
  let furthest = 0;
  return (fraction) => {
    if (fraction < furthest) return;
    furthest = fraction;
    report?.(fraction);
  };
}

/** The analysis' share of the time of an encode whose rungs are chosen first. */
const ANALYSIS_SHARE = 0.08;

/** The fault is in the source, not on this machine, such as a full disk. */
const isOfSource = (error: unknown) =>
  error instanceof MediaError ? isSourceFault(error) : (error as NodeJS.ErrnoException).code === undefined;

type Way = {
  options: EncodeOptions;
  names: FileNames;
  common: SourceRun;
  /** The metadata of a source whose HDR is kept. */
  metadata: HdrMetadata;
};

async function encodeOnce(plan: EncodePlan, way: Way): Promise<EncodeResult> {
  const additional = planAdditional(plan, way.options.spec);
  const renditions = [plan, ...additional.map((one) => one.plan)].flatMap(({ video }) => video?.renditions ?? []);
  way.options.onRenditions?.([...renditions, ...plan.audio].map(({ name }) => name));
  // First, because it shows whether the rest of the work is of use.
  for (const one of additional) await passCopy(one, plan, way);
  const encoded = additional.flatMap((one) => withoutCopy(one) ?? []);
  const to = endOfPrimary(encoded);
  await pass(plan, way, { from: 0, to });
  await passAdditional(encoded, plan, way, to);
  const runs = [{ video: plan.video, hdr: null }, ...additional.map(({ plan: { video }, hdr }) => ({ video, hdr }))];
  for (const { video, hdr } of runs)
    for (const { name } of video?.renditions ?? []) {
      const metadata = { hdr: hdr && way.metadata, spherical: video?.track.spherical ?? null };
      await addInitBoxes(join(way.options.outDir, name, INIT_NAME), metadata);
    }
  return finishRun(plan, way, { additional });
}

const ENCODED = 0.99;
const endOfPrimary = ({ length }: AdditionalPlan[]) => ENCODED / (1 + length * ADDITIONAL_WORK);

/** Copies the source's video, where it is a rendition of an additional codec. Throws as `inspectCopied`. */
async function passCopy({ settings, hdr, plan }: AdditionalPlan, whole: EncodePlan, way: Way): Promise<void> {
  const { video } = plan;
  const [top] = video.renditions;
  if (!video.passthrough?.isCopied || !top) return;
  const copy = { ...plan, video: { ...video, renditions: [top] } };
  const folder = join(way.options.outDir, top.name);
  const share = { from: 0, to: 0, whole, settings };
  await pass(copy, way, share);
  const { isRepeating } = await inspectCopied({ folder, codec: settings.codec, hdr });
  if (!isRepeating) return;
  await rm(folder, { recursive: true, force: true });
  await pass(copy, way, { ...share, isWithoutRepeats: true });
}

/** A run per codec: their encoders take several times the memory of the primary one. */
async function passAdditional(all: AdditionalPlan[], whole: EncodePlan, way: Way, from: number): Promise<void> {
  const step = (ENCODED - from) / all.length;
  for (const [index, { settings, hdr, plan }] of all.entries()) {
    const share = { from: from + index * step, to: from + (index + 1) * step };
    const kept = hdr ? { format: hdr, metadata: way.metadata } : undefined;
    await pass(plan, way, { ...share, whole, settings, hdr: kept });
  }
}

/**
 * One ffmpeg run over the source. `share` is its part of the total work, `whole` the plan that it does a part of,
 * `settings` the settings of an additional codec, and `hdr` the HDR that this codec keeps.
 */
async function pass(
  plan: EncodePlan,
  { options, common }: Way,
  share: {
    from: number;
    to: number;
    whole?: EncodePlan;
    settings?: AdditionalVideo;
    hdr?: KeptHdr | undefined;
    isWithoutRepeats?: boolean;
  },
): Promise<void> {
  const { input, outDir, spec, binaries, watermark, onProgress } = options;
  const { whole, settings: additional, hdr, isWithoutRepeats } = share;
  const encoder = encoderFor(options.encoders, (additional ?? spec.video).codec, hdr);
  const audio = await withGains(plan.audio, { input, spec, ffmpeg: binaries.ffmpeg, run: common });
  await mkdir(outDir, { recursive: true });
  await prepareFolders(outDir, plan);
  const report = (fraction: number) => onProgress?.(share.from + Math.min(1, fraction) * (share.to - share.from));
  const own = { ...plan, audio: audio.filter(({ isCopied }) => isCopied) };
  const isAudioOnly = own.video === null && own.audio.length === 0;
  let isChanging = false;
  const encodeVideo = (room: SourceRun) =>
    run(binaries.ffmpeg, {
      ...room,
      args: encodeArguments({
        input,
        outDir,
        plan: own,
        whole: whole ?? plan,
        spec,
        encoder,
        watermark,
        additional,
        hdr,
        isWithoutRepeats,
      }),
      devices: usesDevices(encoder),
      ...UNTIL_STALLED,
      onLog: (line) => {
        isChanging ||= line.includes(CHANGED_FRAMES);
        room.onLog?.(line);
      },
      onPosition: (seconds) => plan.durationSeconds && report(seconds / plan.durationSeconds),
    });
  await together(common, [
    (room) =>
      encodeTracks(audio, {
        input,
        outDir,
        whole: whole ?? plan,
        spec,
        ffmpeg: binaries.ffmpeg,
        run: room,
        ...(isAudioOnly && { onProgress: report }),
      }),
    ...(isAudioOnly ? [] : [encodeVideo]),
  ]);
  if (isChanging && own.video?.passthrough)
    throw new MediaError("input_invalid", "The frames of the source change, so that it cannot be copied.", false);
}

/** Runs that read the source at the same time; when one fails, the others end. Throws the error of the first that failed. */
async function together(common: SourceRun, runs: readonly ((room: SourceRun) => Promise<unknown>)[]): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([failed.signal, ...(common.signal ? [common.signal] : [])]);
  const errors: unknown[] = [];
  await Promise.all(
    runs.map((start) =>
      start({ ...common, signal }).catch((error) => {
        errors.push(error);
        failed.abort();
      }),
    ),
  );
  if (errors.length > 0) throw errors[0];
}

/** Reads what was written for the plan, and writes the thumbnail, the storyboard and the manifests. */
async function finishRun(
  plan: EncodePlan,
  { options, names, common }: Way,
  { additional }: { additional: AdditionalPlan[] },
): Promise<EncodeResult> {
  const { outDir, spec, binaries, onProgress } = options;
  const read = async (renditions: readonly { name: string }[], count?: number) =>
    (await Promise.all(renditions.map(({ name }) => readWritten(outDir, name, { count })))).filter(
      (one) => one !== null,
    );
  const primary = await read(plan.video?.renditions ?? []);
  const others = additional.flatMap((one) => one.plan.video.renditions);
  const videos = [...primary, ...(await read(others, primary[0]?.segments.length))];
  const { start_seconds: start = 0 } = spec.audio;
  if (start > 0 && plan.video === null) for (const { name } of plan.audio) await moveAudio(outDir, name, start);
  const audios = await read(plan.audio);
  const unseen = unseenSeconds(videos[0], audios);
  if (plan.video && unseen > 0 && plan.video.holdUntilSeconds === 0)
    throw new EndsEarly((videos[0]?.durationSeconds ?? 0) + unseen);
  const skipped = undecodedTracks(plan, [...videos, ...audios]);
  const result = await finish({ plan, videos, audios, outDir, spec, names, binaries, run: common, skipped });
  onProgress?.(1);
  return { ...result, isTruncated: !options.probe.isTruncated && endsEarly(plan, result) };
}
