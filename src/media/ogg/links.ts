import { open } from "node:fs/promises";
import type { ByteRange } from "#lib/isobmff";
import { MediaError } from "../error.ts";

/** Read at once; more than any page has. */
const BLOCK_BYTES = 1 << 20;
/** RFC 3533, 6: up to the table of segments. */
const HEADER_BYTES = 27;
const CAPTURE = Buffer.from("OggS\0", "latin1");
/** `header_type_flag`: the first page of a logical bitstream. */
const BEGINNING = 2;
/** A day of a radio stream has one for each title. A file with more is read as one. */
const MAX_LINKS = 500;

/**
 * The links of a chained Ogg file (RFC 3533, 4): each begins with the first pages of its bitstreams. Null for a file of one link,
 * or of too many. Throws MediaError `aborted`.
 */
export async function linksOf(path: string, signal?: AbortSignal): Promise<ByteRange[] | null> {
  await using file = await open(path, "r");
  const starts: number[] = [];
  const buffer = Buffer.alloc(BLOCK_BYTES);
  let base = 0;
  let kept = 0;
  let next = 0;
  let isHeader = false;
  for (;;) {
    if (signal?.aborted) throw new MediaError("aborted", "The run was aborted.", true);
    const { bytesRead } = await file.read(buffer, kept, buffer.length - kept, null);
    if (bytesRead === 0) break;
    const block = buffer.subarray(0, kept + bytesRead);
    let at = next - base;
    while (at + HEADER_BYTES <= block.length) {
      if (!block.subarray(at, at + CAPTURE.length).equals(CAPTURE)) {
        const found = block.indexOf(CAPTURE, at);
        at = found < 0 ? block.length - CAPTURE.length : found;
        if (found < 0) break;
        continue;
      }
      const segments = block[at + HEADER_BYTES - 1] as number;
      if (at + HEADER_BYTES + segments > block.length) break;
      const isBeginning = ((block[at + CAPTURE.length] as number) & BEGINNING) !== 0;
      if (isBeginning && !isHeader) starts.push(base + at);
      if (starts.length > MAX_LINKS) return null;
      isHeader = isBeginning;
      const body = at + HEADER_BYTES + segments;
      at = block.subarray(body - segments, body).reduce((end, bytes) => end + bytes, body);
    }
    next = base + at;
    kept = Math.max(0, block.length - at);
    base += block.length - kept;
    buffer.copyWithin(0, block.length - kept, block.length);
  }
  if (starts.length < 2) return null;
  return starts.map((start, index) => [start, (starts[index + 1] ?? base + kept) - start]);
}
