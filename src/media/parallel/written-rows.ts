import { createHash } from "node:crypto";
import { join } from "node:path";
import type { HdrFormat } from "#lib/codecs";
import type { SegmentRow, WrittenRendition } from "#protocol/task.ts";
import { INIT_NAME, segmentFileName } from "../arguments.ts";
import type { Segment, Written } from "../package.ts";
import { readResult } from "../results.ts";

/** The name of segment `number`, counted from 0. */
export const segmentName = (number: number) => segmentFileName(number + 1);

/** What a task reports of a rendition in `folder`, whose segments are those from number `first`. */
export async function toRows(
  folder: string,
  { name, init, segments }: Written,
  first: number,
): Promise<WrittenRendition> {
  const sha256 = createHash("sha256")
    .update(await readResult(join(folder, INIT_NAME)))
    .digest("hex");
  const { timescale, codec, width, height, delay } = init;
  const row = ({ bytes, start, duration, first: frame }: Segment): SegmentRow => [
    bytes,
    start,
    duration,
    frame?.offset ?? 0,
    frame?.bytes ?? 0,
  ];
  return { name, init: { timescale, codec, width, height, delay, sha256 }, first, segments: segments.map(row) };
}

/** `hdr`: the format that the rendition keeps, which tasks do not report; null: it is SDR, or audio. */
export function fromRows({ name, init, first, segments }: WrittenRendition, hdr: HdrFormat | null = null): Written {
  const read = segments.map(([bytes, start, duration, offset, size], index) => ({
    name: segmentName(first + index),
    bytes,
    start,
    duration,
    durationSeconds: duration / init.timescale,
    first: size > 0 ? { offset, bytes: size } : null,
  }));
  const durationSeconds = read.reduce((sum, segment) => sum + segment.durationSeconds, 0);
  return { name, init: { ...init, hdr }, segments: read, durationSeconds };
}
