import type { FileHandle } from "node:fs/promises";

/**
 * Writes all of the chunks, at `position` or where the file is. A call may write less than it was given, without an error, as
 * it does just before the disk is full; only the next one fails. Returns the bytes written. Throws the error of the file.
 */
export async function writeAll(file: FileHandle, chunks: Uint8Array[], position: number | null): Promise<number> {
  let total = 0;
  let rest = chunks.filter((chunk) => chunk.byteLength > 0);
  while (rest.length > 0) {
    const { bytesWritten } = await file.writev(rest, position === null ? undefined : position + total);
    total += bytesWritten;
    rest = without(rest, bytesWritten);
  }
  return total;
}

function without(chunks: Uint8Array[], bytes: number): Uint8Array[] {
  let skip = bytes;
  let whole = 0;
  while (whole < chunks.length && skip >= (chunks[whole] as Uint8Array).byteLength) {
    skip -= (chunks[whole++] as Uint8Array).byteLength;
  }
  const rest = chunks.slice(whole);
  if (skip > 0) rest[0] = (rest[0] as Uint8Array).subarray(skip);
  return rest;
}
