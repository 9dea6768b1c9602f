import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeArguments } from "./arguments.ts";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { type Binaries, type RunOptions, run } from "./ffmpeg.ts";
import { type Rendition, writeManifests } from "./manifests.ts";
import { prepareFolders, readWritten } from "./package.ts";
import { findPassthrough } from "./passthrough.ts";
import { type EncodePlan, planEncode } from "./plan.ts";
import type { Probe } from "./probe.ts";
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
  signal?: AbortSignal;
  /** Where ffmpeg's working folder is made; the system's temporary folder unless given. */
  scratchDir?: string;
  pidDir?: string;
  /** The most that one ffmpeg may allocate. */
  memoryBytes?: number | undefined;
  /** File names in `outDir`, where they are not the specification's. */
  names?: { manifest?: string; dash?: string; thumbnail?: string; storyboard?: string };
};

export type EncodeResult = {
  /** File names in `outDir`. */
  manifest: string;
  dash: string;
  thumbnail: string;
  /** Null for sound alone, and where none could be made. */
  storyboard: string | null;
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
  };
  const plan = planEncode(probe, spec);
  const cwd = await mkdtemp(join(options.scratchDir ?? tmpdir(), "encode-"));
  const common = {
    cwd,
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
  const once = (chosen: EncodePlan) => encodeOnce({ ...options, onProgress }, { plan: chosen, names, common });
  try {
    const passthrough = await findPassthrough({ input: options.input, probe, plan, spec, binaries, run: common });
    if (!passthrough || !plan.video) return await once(plan);
    try {
      return await once({ ...plan, video: { ...plan.video, passthrough } });
    } catch (error) {
      // What turned out not to fit, a fault in the source or a cut elsewhere, is encoded like any other.
      if (!isOfSource(error)) throw error;
      await rm(outDir, { recursive: true, force: true });
      return await once(plan);
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

type Once = {
  plan: EncodePlan;
  names: { manifest: string; dash: string; thumbnail: string; storyboard: string };
  common: Pick<RunOptions, "signal" | "pidDir"> & { cwd: string };
};

async function encodeOnce(options: EncodeOptions, { plan, names, common }: Once): Promise<EncodeResult> {
  const { input, outDir, spec, binaries, onProgress } = options;
  await mkdir(outDir, { recursive: true });
  await prepareFolders(outDir, plan);
  await run(binaries.ffmpeg, {
    ...common,
    args: encodeArguments({ input, outDir, plan, spec }),
    timeLimitMs: timeLimitMs(plan.durationSeconds),
    stallMs: STALL_MS,
    onPosition: (seconds) => {
      if (plan.durationSeconds) onProgress?.(Math.min(0.99, seconds / plan.durationSeconds));
    },
  });
  const read = async (renditions: readonly { name: string }[]) =>
    (await Promise.all(renditions.map(({ name }) => readWritten(outDir, name)))).filter((one) => one !== null);
  const videos = await read(plan.video?.renditions ?? []);
  const audios = await read(plan.audio);
  if (videos.length + audios.length === 0) {
    throw new MediaError("input_invalid", "Nothing in the source could be decoded.", false);
  }
  const pictures = { outDir, spec, videos, ffmpeg: binaries.ffmpeg, run: common };
  const storyboard = await writeStoryboard({ ...pictures, name: names.storyboard });
  await writeThumbnail({ ...pictures, name: names.thumbnail, audios });
  const packaged = await writeManifests({ outDir, plan, spec, videos, audios, names, storyboard });
  const [top] = packaged.renditions;
  onProgress?.(1);
  return {
    ...names,
    width: top?.width ?? null,
    height: top?.height ?? null,
    durationSeconds: Math.round(packaged.durationSeconds * 1000) / 1000,
    frameRate: top?.frame_rate ?? null,
    renditions: packaged.renditions,
    storyboard: storyboard?.name ?? null,
    files: [
      ...packaged.files.slice(0, -2),
      names.thumbnail,
      ...(storyboard ? [storyboard.image, storyboard.name] : []),
      ...packaged.files.slice(-2),
    ],
    bytes: packaged.bytes + (await stat(join(outDir, names.thumbnail))).size + (storyboard?.bytes ?? 0),
  };
}
