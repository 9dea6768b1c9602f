import { type FileHandle, readFile } from "node:fs/promises";
import { join } from "node:path";
import { find, SEGMENT_HEAD } from "#lib/isobmff";
import { INIT_NAME, segmentFileName } from "#media/arguments.ts";
import { openSegment } from "../cmaf/segment-file.ts";
import type { SourceSegments } from "./source-segments.ts";

/** One read of a file. */
const CHUNK_BYTES = 256 * 1024;

/**
 * The video of a running stream as one fragmented MP4 file, from the start of segment `from` to the end of the stream or
 * until `signal` aborts, as it reaches the disk. What is not read is not in memory. Times are those of the files: the edit
 * list, which would shift them, is left out. Throws the error of a file.
 */
export async function* feed(
  source: SourceSegments,
  { folder, from, signal }: { folder: string; from: number; signal: AbortSignal },
): AsyncGenerator<Buffer> {
  yield withoutEdits(await readFile(join(folder, INIT_NAME)));
  for (let number = from; !signal.aborted; number++) {
    if (!(await begun(source, number, signal))) return;
    await using file = await openSegment(join(folder, segmentFileName(number)));
    yield* segmentAsWritten(source, { number, file, signal });
  }
}

/** Waits for the beginning of a segment; false when the stream has ended before it. */
async function begun(source: SourceSegments, number: number, signal: AbortSignal): Promise<boolean> {
  while (!source.find(number)) {
    if (source.isEnded || signal.aborted) return false;
    if (number <= source.lastComplete) throw new Error("The encoder is too far behind.");
    await source.changed(signal);
  }
  return true;
}

/** The bytes of a segment behind its head as they reach the disk, until it is complete or the stream ends. */
async function* segmentAsWritten(
  source: SourceSegments,
  { number, file, signal }: { number: number; file: FileHandle; signal: AbortSignal },
): AsyncGenerator<Buffer> {
  let at = SEGMENT_HEAD.length;
  while (!signal.aborted) {
    const segment = source.find(number);
    if (!segment) throw new Error("The encoder is too far behind.");
    while (at < segment.bytes && !signal.aborted) {
      const length = Math.min(CHUNK_BYTES, segment.bytes - at);
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
      if (bytesRead === 0) throw new Error("A segment is shorter than reported.");
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
    if (source.isEnded || (segment.isComplete && at >= segment.bytes)) return;
    if (at >= segment.bytes) await source.changed(signal);
  }
}

/** A copy of an init segment whose edit list is a `free` box. */
function withoutEdits(init: Buffer): Buffer {
  const copy = Buffer.from(init);
  const edits = find(copy, ["moov", "trak", "edts"]);
  if (edits) copy.write("free", edits.start - 4, "latin1");
  return copy;
}
