import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type InitSegment,
  joinSegments,
  readFirstSample,
  readInit,
  readSegmentTimes,
  SEGMENT_HEAD_BYTES,
} from "#lib/isobmff";
import { INIT_NAME, MUXER_MANIFEST, SEGMENT_PATTERN } from "./arguments.ts";
import type { EncodePlan } from "./plan.ts";
import {
  listResults,
  MAX_READ_BYTES,
  makeFolder,
  type Origin,
  openResult,
  readResult,
  writeResult,
} from "./results.ts";

export type Segment = {
  name: string;
  bytes: number;
  start: number;
  duration: number;
  durationSeconds: number;
  /** Byte range of its first frame, or audio packet; null when it could not be located. */
  first: { offset: number; bytes: number; isSync?: boolean } | null;
};

/** One rendition on disk. Times in `segments` are in units of `init.timescale` unless stated otherwise. */
export type Written = { name: string; init: InitSegment; segments: Segment[]; durationSeconds: number };

/** Creates the directories that ffmpeg writes into. */
export async function prepareFolders(outDir: string, plan: EncodePlan): Promise<void> {
  const names = [...(plan.video?.renditions ?? []), ...plan.audio].map(({ name }) => name);
  for (const name of names) await makeFolder(join(outDir, name));
}

/**
 * Reads what was written for a rendition; null when the encoder received no input (an empty track). A short last segment
 * is joined with the one before it, unless others follow it elsewhere. With `count`, which is the number of segments of
 * another rendition, it is joined exactly when there is one more.
 */
export async function readWritten(
  outDir: string,
  name: string,
  { joinLast = true, count, areOurs }: { joinLast?: boolean; count?: number | undefined } & Origin = {},
): Promise<Written | null> {
  const folder = join(outDir, name);
  await rm(join(folder, MUXER_MANIFEST), { force: true });
  const files = await listResults(folder).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const names = segmentsIn(files);
  if (names.length === 0 || !files.includes(INIT_NAME)) {
    await rm(folder, { recursive: true, force: true });
    return null;
  }
  const init = readInit(await readResult(join(folder, INIT_NAME), MAX_READ_BYTES, { areOurs }));
  const segments: Segment[] = [];
  for (const file of names) segments.push(await readSegment(folder, file, { areOurs }));
  const [before, last] = segments.slice(-2);
  const isExtra = (one: Segment) =>
    count === undefined ? isShort(one.durationSeconds, init.delay / init.timescale) : segments.length === count + 1;
  if (joinLast && before && last && isExtra(last))
    if (await joinFiles(folder, [before, last], { areOurs }))
      segments.splice(-2, 2, await readSegment(folder, before.name));
  const durationSeconds = segments.reduce((sum, segment) => sum + segment.durationSeconds, 0);
  return { name, init, segments, durationSeconds };
}

/** The segments of a rendition, in order. Throws the errors of the file system. */
export const segmentNames = async (folder: string): Promise<string[]> => segmentsIn(await listResults(folder));

const segmentsIn = (files: readonly string[]): string[] =>
  files.filter((file) => SEGMENT_PATTERN.test(file)).sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));

/**
 * A shorter last segment is merged into the previous one. hls.js computes a segment's time without the edit list, later
 * by the delay of B-frames; when the last segment is no longer than that, it finds nothing in its buffer, requests the
 * segment forever, and never fires `ended`. A tiny segment is also not worth a request.
 */
export const SHORT_SECONDS = 0.25;
export const isShort = (seconds: number, delaySeconds = 0) => seconds <= Math.max(SHORT_SECONDS, delaySeconds);

async function joinFiles(folder: string, [before, last]: [Segment, Segment], origin: Origin): Promise<boolean> {
  const path = join(folder, before.name);
  const lastPath = join(folder, last.name);
  const joined = joinSegments(
    await readResult(path, MAX_READ_BYTES, origin),
    await readResult(lastPath, MAX_READ_BYTES, origin),
  );
  if (!joined) return false;
  // A segment under its final name is always complete: it may be being delivered.
  await writeResult(path, joined);
  await rm(lastPath);
  return true;
}

export async function readSegment(folder: string, name: string, origin: Origin = {}): Promise<Segment> {
  const { bytes, head } = await readHead(join(folder, name), origin);
  const { timescale, start, duration } = readSegmentTimes(head);
  return { name, bytes, start, duration, durationSeconds: duration / timescale, first: readFirstSample(head) };
}

async function readHead(path: string, origin: Origin): Promise<{ bytes: number; head: Buffer }> {
  await using file = await openResult(path, origin);
  const head = Buffer.alloc(SEGMENT_HEAD_BYTES);
  const { bytesRead } = await file.read(head, 0, head.length, 0);
  return { bytes: (await file.stat()).size, head: head.subarray(0, bytesRead) };
}
