import type { FlvReader } from "./flv-reader.ts";

const MOD_EX = 7;

/**
 * Skips the ModEx prefixes of Enhanced RTMP 2 (ExVideoTagHeader, ExAudioTagHeader) and returns the packet type after
 * them. The only one that is defined adds nanoseconds to a timestamp in milliseconds, which a packager does not need.
 */
export function skipModEx(packetType: number, reader: FlvReader): number {
  let type = packetType;
  while (type === MOD_EX) {
    const size = reader.byte() + 1;
    reader.skip(size === 256 ? reader.uint16() + 1 : size);
    type = reader.byte() & 0x0f;
  }
  return type;
}

/** A FourCC or codec number from a peer, for a message: other characters than letters and digits are replaced. */
export const printable = (fourCc: string) => fourCc.replaceAll(/[^A-Za-z0-9]/g, "?");
