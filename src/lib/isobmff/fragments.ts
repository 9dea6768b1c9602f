import { open } from "node:fs/promises";

const HEADER_BYTES = 16;
/** A fragment follows the index, and what is between them. */
const MAX_BOXES = 1000;

/**
 * Whether the samples of an MP4 file are in fragments (ISO/IEC 14496-12, 8.8), whose times are stated by each: a recorder that
 * resumes begins again.
 */
export async function isFragmented(path: string): Promise<boolean> {
  await using file = await open(path);
  const header = Buffer.alloc(HEADER_BYTES);
  for (let at = 0, count = 0; count < MAX_BOXES; count++) {
    const { bytesRead } = await file.read(header, 0, HEADER_BYTES, at);
    if (bytesRead < 8) return false;
    if (header.toString("latin1", 4, 8) === "moof") return true;
    const short = header.readUInt32BE(0);
    const length = short === 1 ? Number(header.readBigUInt64BE(8)) : short;
    if (length < 8) return false;
    at += length;
  }
  return false;
}
