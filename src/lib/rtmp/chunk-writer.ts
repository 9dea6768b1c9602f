/** The default of the protocol (RTMP 1.0, 5.4.1), until Set Chunk Size. */
export const DEFAULT_CHUNK_BYTES = 128;
const HEADER_BYTES = 12;
/** In the timestamp field: the timestamp follows in 4 more bytes, in every chunk of the message (5.3.1.3). */
const EXTENDED = 0xff_ff_ff;

/** Chunk streams that are written: 2 is prescribed for protocol control (5.4), the others are a convention. */
export const CHUNK_STREAM = { control: 2, command: 3, audio: 4, status: 5, video: 6 } as const;

/** One message as chunks: a full header (type 0), then one-byte headers (type 3). RTMP 1.0, 5.3.1. */
export function writeChunks(
  chunkStream: number,
  /** `timestamp` in unsigned 32-bit milliseconds. */
  { type, streamId, payload, timestamp = 0 }: { type: number; streamId: number; payload: Buffer; timestamp?: number },
  chunkBytes: number = DEFAULT_CHUNK_BYTES,
): Buffer {
  const continuations = Math.max(0, Math.ceil(payload.length / chunkBytes) - 1);
  const extended = timestamp >= EXTENDED ? 4 : 0;
  const output = Buffer.alloc(HEADER_BYTES + payload.length + continuations + extended * (continuations + 1));
  output[0] = chunkStream;
  output.writeUIntBE(extended ? EXTENDED : timestamp, 1, 3);
  output.writeUIntBE(payload.length, 4, 3);
  output[7] = type;
  output.writeUInt32LE(streamId, 8);
  let at = HEADER_BYTES;
  if (extended) at = output.writeUInt32BE(timestamp, at);
  for (let from = 0; from < payload.length; from += chunkBytes) {
    if (from > 0) {
      output[at++] = 0xc0 | chunkStream;
      if (extended) at = output.writeUInt32BE(timestamp, at);
    }
    at += payload.copy(output, at, from, from + chunkBytes);
  }
  return output;
}
