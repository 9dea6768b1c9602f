/** The default of the protocol (RTMP 1.0, 5.4.1). What this server sends is short: it sends no Set Chunk Size. */
const CHUNK_BYTES = 128;
const HEADER_BYTES = 12;

/** Chunk streams that this server writes: 2 is prescribed for protocol control (5.4), the others are a convention. */
export const CHUNK_STREAM = { control: 2, command: 3, status: 5 } as const;

/** One message as chunks: a full header (type 0, timestamp 0), then one-byte headers (type 3). RTMP 1.0, 5.3.1. */
export function writeChunks(
  chunkStream: number,
  { type, streamId, payload }: { type: number; streamId: number; payload: Buffer },
): Buffer {
  const continuations = Math.max(0, Math.ceil(payload.length / CHUNK_BYTES) - 1);
  const output = Buffer.alloc(HEADER_BYTES + payload.length + continuations);
  output[0] = chunkStream;
  output.writeUIntBE(payload.length, 4, 3);
  output[7] = type;
  output.writeUInt32LE(streamId, 8);
  let at = HEADER_BYTES;
  for (let from = 0; from < payload.length; from += CHUNK_BYTES) {
    if (from > 0) output[at++] = 0xc0 | chunkStream;
    at += payload.copy(output, at, from, from + CHUNK_BYTES);
  }
  return output;
}
