import { open } from "node:fs/promises";
import { MediaError } from "./error.ts";

/** ISO/IEC 14496-3, table 1.18, and the samples of a raw data block. */
const RATES = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350];
const BLOCK_SAMPLES = 1024;
/** 1.A.2.2: the header without the checksum. */
const HEADER_BYTES = 7;
const READ_BYTES = 1 << 16;

/**
 * How long the frames of an ADTS file last, in seconds. A demuxer has no times but those that it computes with the sample rate of
 * the beginning, which changes where files were joined. Null for another file. Throws MediaError `aborted`.
 */
export async function adtsSeconds(path: string, signal?: AbortSignal): Promise<number | null> {
  await using file = await open(path, "r");
  const buffer = Buffer.alloc(READ_BYTES);
  let kept = 0;
  let seconds = 0;
  for (;;) {
    if (signal?.aborted) throw new MediaError("aborted", "The run was aborted.", true);
    const { bytesRead } = await file.read(buffer, kept, buffer.length - kept, null);
    if (bytesRead === 0) return seconds > 0 ? seconds : null;
    const block = buffer.subarray(0, kept + bytesRead);
    let at = 0;
    while (at + HEADER_BYTES <= block.length) {
      const length = (block.readUInt32BE(at + 3) >> 13) & 0x1fff;
      const rate = RATES[((block[at + 2] as number) >> 2) & 15];
      // The synchronization word, and a layer that is always 0.
      if ((block.readUInt16BE(at) & 0xfff6) !== 0xfff0 || length < HEADER_BYTES || rate === undefined) {
        at++;
        continue;
      }
      if (at + length > block.length) break;
      seconds += (BLOCK_SAMPLES * (((block[at + 6] as number) & 3) + 1)) / rate;
      at += length;
    }
    kept = block.length - at;
    buffer.copyWithin(0, at, block.length);
  }
}
