import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { UserError } from "#lib/base";
import { processStartTime } from "#lib/sandbox";
import { leftOut, readTextTracks, textTracksLeftOut } from "#media/captions/read-text-tracks.ts";
import { encode } from "#media/encode.ts";
import type { EncodingSpec } from "#media/encoding-spec.ts";
import { MediaError } from "#media/error.ts";
import type { Binaries } from "#media/ffmpeg.ts";
import type { EncodeResult } from "#media/finish.ts";
import type { Probe } from "#media/probe.ts";
import { probeSource } from "#media/timeline.ts";
import { warningsOf } from "#media/tracks.ts";
import type { Warning } from "#model/warnings.ts";
import { subtitleOfTrack } from "#protocol/text-tracks.ts";
import type { Scratch } from "#worker/scratch.ts";
import { sumOf } from "#worker/transfer.ts";
import type { Meter } from "./progress-meter.ts";
import { unchanged } from "./send.ts";
import type { File } from "./state.ts";

export type Encoder = {
  spec: EncodingSpec;
  /** For this specification only. */
  specName: string;
  /** Path of the image of the specification's watermark. */
  watermark: string | undefined;
  binaries: Binaries;
  memoryBytes: number | undefined;
  /** Contains a directory per file until it is delivered, and ffmpeg's temporary files. */
  dir: string;
  scratch: Scratch;
  /** One uses the whole machine. */
  slot<T>(work: () => Promise<T>): Promise<T>;
  signal: AbortSignal;
  meter: Meter;
};
export type EncodedMedia = {
  specName: string;
  sourceSha256: string;
  result: EncodeResult;
  /** What of the file is left out. */
  warnings: Warning[];
  /** The text tracks of the file, as WebVTT among the files. */
  subtitles: PushedSubtitle[];
  /** Relative to `out` of the file's directory; manifests last. */
  files: { name: string; bytes: number }[];
};

export type PushedSubtitle = { name: string; language: string; label: string; isDefault: boolean };

/** Encodes a file, or returns the result of an earlier run. Throws a UserError for a file that cannot be encoded. */
export async function mediaOf(
  encoder: Encoder,
  file: File,
  folder: string,
): Promise<{ made: EncodedMedia; isFresh: boolean }> {
  const stored = await storedResult(folder, encoder.specName);
  if (stored) return { made: stored, isFresh: false };
  return { made: await encoder.slot(() => encodeToFolder(encoder, file, folder)), isFresh: true };
}

const ENCODED = "made.json";

/** Null unless every file still exists, is complete, and matches the server's specification. */
async function storedResult(folder: string, specName: string): Promise<EncodedMedia | null> {
  const text = await readFile(join(folder, ENCODED), "utf8").catch(() => null);
  if (text === null) return null;
  const media = JSON.parse(text) as Omit<EncodedMedia, "warnings" | "subtitles"> & Partial<EncodedMedia>;
  if (media.specName !== specName) return null;
  for (const { name, bytes } of media.files) {
    const info = await stat(join(folder, "out", name)).catch(() => null);
    if (info?.size !== bytes) return null;
  }
  // Results of earlier versions have neither.
  return { ...media, warnings: media.warnings ?? [], subtitles: media.subtitles ?? [] };
}

async function encodeToFolder(encoder: Encoder, file: File, folder: string): Promise<EncodedMedia> {
  const { spec, watermark, binaries, memoryBytes, scratch, signal, meter } = encoder;
  const outDir = join(folder, "out");
  await rm(join(folder, ENCODED), { force: true });
  await rm(outDir, { recursive: true, force: true });
  const work = await scratch.jobFolder("push");
  const common = { signal, pidDir: scratch.pidDir, memoryBytes };
  const sums = new AbortController();
  // Hashed concurrently: the file is being read anyway.
  const sum = sumOf(file.path, null, AbortSignal.any([signal, sums.signal]));
  sum.catch(() => {});
  const progress = meter.encode(basename(file.path));
  try {
    const source = await probeSource(file.path, binaries, { ...common, cwd: work });
    progress.seconds(source.durationSeconds);
    const result = await encode({
      input: file.path,
      outDir,
      probe: source,
      spec,
      watermark,
      binaries,
      scratchDir: work,
      ...common,
      onProgress: progress.fraction,
    });
    const sourceSha256 = await sum;
    await unchanged(file);
    const texts = await writeSubtitles(file.path, outDir, { source, durationSeconds: result.durationSeconds, signal });
    const files: EncodedMedia["files"] = [];
    for (const name of [...texts.subtitles.map(({ name }) => name), ...result.files])
      files.push({ name, bytes: (await stat(join(outDir, name))).size });
    const warnings = [...warningsOf(source), ...warningsOf(result), ...texts.warnings];
    const { subtitles } = texts;
    const media: EncodedMedia = { specName: encoder.specName, sourceSha256, result, warnings, subtitles, files };
    await replaceFile(join(folder, ENCODED), JSON.stringify(media));
    return media;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw inWords(error, encoder.dir);
  } finally {
    sums.abort();
    progress.end();
    await rm(work, { recursive: true, force: true });
  }
}

type TextOptions = { source: Probe; durationSeconds: number; signal: AbortSignal };

/** Writes the text tracks of a file next to its media. The manifest of a batch takes one subtitle for each language. */
async function writeSubtitles(path: string, outDir: string, { source, durationSeconds, signal }: TextOptions) {
  const subtitles: PushedSubtitle[] = [];
  if (source.jumps) return { subtitles, warnings: await textTracksLeftOut(path, "has times that jump") };
  const { startSeconds } = source;
  const { tracks, warnings } = await readTextTracks(path, { startSeconds, durationSeconds, signal, onMove: () => {} });
  for (const { vtt, ...track } of tracks) {
    const name = `track${track.number}`;
    const { language, label } = subtitleOfTrack({ ...track, label: track.title, name }, subtitles);
    if (language.includes("-x-")) {
      warnings.push(leftOut(track, "is forced or not the first of its language"));
      continue;
    }
    await mkdir(join(outDir, "subtitles"), { recursive: true });
    await writeFile(join(outDir, "subtitles", `${name}.vtt`), vtt);
    subtitles.push({ name: `subtitles/${name}.vtt`, language, label, isDefault: track.isDefault });
  }
  return { subtitles, warnings };
}

function inWords(error: unknown, dir: string): unknown {
  const isFull =
    error instanceof MediaError ? error.code === "out_of_space" : (error as NodeJS.ErrnoException)?.code === "ENOSPC";
  if (isFull)
    return new UserError(`There is no space left in ${dir}; free some, or choose another directory with --scratch.`);
  if (!(error instanceof MediaError)) return error;
  const last = error.code === "encode_failed" ? error.logTail.split("\n").at(-1) : "";
  return new UserError(last ? `${error.message.replace(/\.$/, "")}: ${last}` : error.message);
}

/** A process that is killed leaves either the old file or the new one. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, text, { mode: 0o600 });
  await rename(temporary, path);
}

/**
 * The directory of a file, locked against other vodbox processes that push it too. Throws a UserError while it is
 * locked.
 */
export async function ownFolder(dir: string, name: string): Promise<string> {
  const folder = join(dir, name);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, "owner");
  const [pid, start] = (await readFile(path, "utf8").catch(() => "")).split(" ");
  if (pid && Number(pid) !== process.pid && start && (await processStartTime(Number(pid))) === start)
    throw new UserError(`Process ${pid} is already pushing this file; wait for it or stop it.`);
  await replaceFile(path, `${process.pid} ${(await processStartTime(process.pid)) ?? ""}`);
  return folder;
}
