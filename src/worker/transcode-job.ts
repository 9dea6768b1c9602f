import { access, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type SphericalMetadata, vrTagsOf } from "#lib/codecs";
import { type EncodeOptions, encode } from "#media/encode.ts";
import type { EncodeResult } from "#media/finish.ts";
import type { Rendition } from "#media/manifests/renditions.ts";
import { planEncode } from "#media/plan.ts";
import type { Probe } from "#media/probe.ts";
import { removeOthers } from "#media/results.ts";
import { withoutJumps } from "#media/timeline/repair.ts";
import { probeSource } from "#media/timeline.ts";
import { warningsOf } from "#media/tracks.ts";
import { pathBelow } from "#model/object-keys.ts";
import type { Warning } from "#model/warnings.ts";
import type { Completion, WorkerContract } from "#protocol/worker-client.ts";
import { addCaptions, type Captions, createCaptions } from "./captions.ts";
import type { JobContext } from "./context.ts";
import type { LeaseHeartbeat } from "./lease-heartbeat.ts";
import { Publisher } from "./publisher.ts";
import { fetchWatermark, requestedSpec } from "./requested-spec.ts";
import { runConcurrently } from "./run-concurrently.ts";
import { type SourceTextFiles, writeSourceTexts } from "./source-texts.ts";
import { download, removeFolder, SourceCorrupt, sourceMissing, sumOf } from "./transfer.ts";

// Shares of the stages in 0–100; encoding takes almost all of the time.
const PROBED = 5;
/** While a large source is read, and repaired. */
const MEASURED = 8;
const ENCODED = 95;
/** For a job whose captions take longer than its encode: the rest of 100 is for publishing. */
const CAPTIONED = 99;

export type Workspace = { heartbeat: LeaseHeartbeat; work: string; outDir: string };

/** Produces what a job requests and uploads it. The returned result is ready to be published. */
export async function transcode(job: WorkerContract, context: JobContext, workspace: Workspace): Promise<Completion> {
  const { client } = context;
  const { heartbeat, work, outDir } = workspace;
  const input = job.source.local_path ?? join(work, "source");
  await fetchSource(job, context, workspace, input);
  // A job that was released keeps its attempt number, and so its directory.
  await removeFolder(outDir);
  await mkdir(outDir, { recursive: true });
  const watched = new Set<string>();
  const onMove = () => heartbeat.move();
  const publisher = new Publisher({ client, job, dir: outDir, signal: heartbeat.signal, watched, onMove });
  try {
    const { result, captions, closed, ...source } = await encodeChecked(job, context, workspace, { input, watched });
    if (!job.source.local_path) await rm(input, { force: true });
    heartbeat.report("publishing", ENCODED);
    await addCaptions(captions, outDir);
    await addCaptions(closed, outDir);
    const files = [...captions.files, ...closed.files, ...result.files];
    // On a shared disk they would be objects of the asset.
    await removeOthers(outDir, files);
    await publisher.finish(files);
    heartbeat.report("publishing", 100);
    return { ...toCompletion(result, job.outputs.prefix, source), ...captions.reported, ...closed.reported };
  } finally {
    await publisher.stop();
  }
}

async function fetchSource(
  job: WorkerContract,
  { client }: JobContext,
  { heartbeat }: Workspace,
  input: string,
): Promise<void> {
  const { source } = job;
  if (source.local_path) return access(source.local_path).catch(sourceMissing);
  heartbeat.report("downloading", 0);
  const size = source.bytes || Number.POSITIVE_INFINITY;
  await download(client, job, {
    path: input,
    signal: heartbeat.signal,
    onBytes: (bytes) => heartbeat.report("downloading", (PROBED * bytes) / size),
  });
}

/** Encodes, and hashes the source concurrently: it is being read anyway, and hashing takes a small part of the time. */
async function encodeChecked(
  job: WorkerContract,
  context: JobContext,
  { heartbeat, work, outDir }: Workspace,
  { input, watched }: { input: string; watched: Set<string> },
): Promise<{ result: EncodeResult; captions: Captions; closed: SourceTextFiles } & SourceFacts> {
  const { binaries, scratch, memoryBytes, encoders } = context;
  const { source } = job;
  const spoiled = new AbortController();
  const sum = sumOf(input, source.sha256, heartbeat.signal);
  sum.catch((error) => error instanceof SourceCorrupt && spoiled.abort());
  const signal = AbortSignal.any([heartbeat.signal, spoiled.signal]);
  const common = { signal, pidDir: scratch.pidDir, memoryBytes };
  try {
    heartbeat.report("probing", PROBED);
    const onMove = () => heartbeat.advance("probing", MEASURED);
    const media = await probeSource(input, binaries, { ...common, cwd: work, onMove });
    const spec = requestedSpec(job);
    const watermark = await fetchWatermark(spec, context, { work, signal });
    // Once, for the encode and for captions: both have the times of the repaired source.
    const repairing = { ...common, cwd: work, reads: [input], writes: [] };
    const repaired = await withoutJumps({ input, probe: media }, { binaries, run: repairing, onMove });
    const whole = planEncode(repaired.probe, spec);
    heartbeat.report("encoding", PROBED);
    // Without requests there is no such stage.
    let captioned = Object.keys(job.outputs.subtitle_paths ?? {}).length > 0 ? 0 : 1;
    let isEncoded = false;
    const reportCaptions = () =>
      isEncoded && captioned < 1 && heartbeat.report("captioning", ENCODED + captioned * (CAPTIONED - ENCODED));
    const [result, [captions, closed]] = await runConcurrently(
      signal,
      async (ended) => {
        const encoded = await encode({
          ...common,
          signal: ended,
          ...repaired,
          outDir,
          spec,
          binaries,
          scratchDir: work,
          names: requestedNames(job),
          encoders,
          watermark,
          onLog: (line) => heartbeat.logLine(line),
          onMove: () => heartbeat.move(),
          onRenditions: (names) => {
            // They are published when they have their times.
            if (spec.audio.start_seconds) return;
            for (const name of names) watched.add(name);
          },
          onProgress: (fraction) => heartbeat.report("encoding", PROBED + fraction * (ENCODED - PROBED)),
        });
        isEncoded = true;
        reportCaptions();
        return encoded;
      },
      (ended) => {
        const onProgress = (fraction: number) => {
          captioned = fraction;
          reportCaptions();
        };
        const reading = { work, onMove: () => heartbeat.move() };
        return runConcurrently(
          ended,
          (signal) => createCaptions(job, context, { ...repaired, whole, ...reading, signal, onProgress }),
          (signal) =>
            writeSourceTexts(job, context, {
              input: repaired.input,
              original: input,
              plan: whole,
              startSeconds: repaired.probe.startSeconds,
              ...{ ...reading, signal },
            }),
        );
      },
    );
    return { result, captions, closed, sum: await sum, ...factsOf(media) };
  } catch (error) {
    // ffmpeg usually fails first on a damaged source, without naming the cause.
    if (source.sha256 && !heartbeat.signal.aborted) await sum;
    throw error;
  }
}

/** The names that the contract requires, relative to the prefix. */
export function requestedNames({ outputs }: WorkerContract): NonNullable<EncodeOptions["names"]> {
  const named = (field: string, key: string | null | undefined) => {
    const rest = pathBelow(outputs.prefix, key ?? "") ?? "";
    return /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(rest) ? { [field]: rest } : {};
  };
  return {
    ...named("manifest", outputs.manifest_path),
    ...named("dash", outputs.dash_manifest_path),
    ...named("thumbnail", outputs.thumbnail_path),
    ...named("storyboard", outputs.storyboard_path),
    ...named("mp4", outputs.mp4_path),
  };
}

type Media = Omit<Completion, "subtitle_paths" | "caption_errors">;
/** What was read of the source. `sum`: its SHA-256. `warnings`: what of it is left out. */
export type SourceFacts = { sum?: string; spherical: SphericalMetadata | null; warnings: Warning[] };

const factsOf = (media: Probe) => ({ spherical: media.video?.spherical ?? null, warnings: warningsOf(media) });

export function toCompletion(result: EncodeResult, prefix: string, source: SourceFacts): Media {
  const below = (one: Rendition) => ({ ...one, score: one.score ?? null, playlist_path: prefix + one.playlist_path });
  const warnings = [...source.warnings, ...warningsOf(result)];
  return {
    manifest_path: prefix + result.manifest,
    dash_manifest_path: prefix + result.dash,
    thumbnail_path: prefix + result.thumbnail,
    storyboard_path: result.storyboard && prefix + result.storyboard,
    mp4_path: result.mp4 && prefix + result.mp4,
    media: {
      duration_seconds: result.durationSeconds,
      width: result.width,
      height: result.height,
      frame_rate: result.frameRate,
      bytes: result.bytes,
      ...(source.spherical && vrTagsOf(source.spherical)),
      ...(source.sum && { source_sha256: source.sum }),
      ...(warnings.length > 0 && { warnings }),
      renditions: result.renditions.map(below),
      audio_renditions: result.audioRenditions.map(below),
    },
  };
}
