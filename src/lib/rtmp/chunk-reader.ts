import { RtmpFault } from "./fault.ts";
import { MESSAGE, type RtmpMessage } from "./messages.ts";

const DEFAULT_CHUNK_BYTES = 128;
/** A message has at most 2^24 − 1 bytes: larger chunk sizes are equivalent (RTMP 1.0, 5.4.1). */
const MAX_CHUNK_BYTES = 0xff_ff_ff;
/** In the timestamp field: the timestamp follows in 4 more bytes (5.3.1.3). */
const EXTENDED = 0xff_ff_ff;
/** Length of the message header for each header type (5.3.1.2). */
const HEADER_BYTES = [11, 7, 3, 0] as const;
/** Reserved at once for a message. More only once as many bytes have arrived: a length alone costs the peer nothing. */
const FIRST_BYTES = 64 * 1024;

export type ChunkReaderLimits = {
  chunkStreams: number;
  bufferedBytes: number;
  /** Bytes of a message of this type; called when its header is read. */
  messageBytes(type: number): number;
};

/** What a chunk stream repeats from chunk to chunk, and the message that is being received. */
type ChunkStream = {
  timestamp: number;
  /** The last timestamp field: a delta, or the timestamp itself after a header of type 0. */
  field: number;
  isExtended: boolean;
  length: number;
  type: number;
  streamId: number;
  /** Null between messages. Grows up to `length`. */
  payload: Buffer | null;
  received: number;
};

/**
 * Reassembles messages from chunks (RTMP 1.0, 5.3). Applies Set Chunk Size and Abort itself, since they change how the
 * following bytes are read; all other messages are returned. Linear in the bytes appended. Every method throws RtmpFault
 * for chunks that violate the protocol or a limit; the reader is unusable then.
 */
export class ChunkReader {
  readonly #limits: ChunkReaderLimits;
  readonly #streams = new Map<number, ChunkStream>();
  #input: Buffer = Buffer.alloc(0);
  #at = 0;
  #chunkBytes = DEFAULT_CHUNK_BYTES;
  /** The chunk whose payload is being read, and how many of its bytes are still to come. */
  #chunk: ChunkStream | null = null;
  #chunkRest = 0;
  #buffered = 0;

  constructor(limits: ChunkReaderLimits) {
    this.#limits = limits;
  }

  /** Bytes reserved for messages that are incomplete. */
  get bufferedBytes(): number {
    return this.#buffered;
  }

  /** Call `next` until it returns null before appending more: the reader keeps what it has not read. */
  append(data: Buffer): void {
    const rest = this.#input.subarray(this.#at);
    this.#input = rest.length === 0 ? data : Buffer.concat([rest, data]);
    this.#at = 0;
  }

  /** The next complete message, or null when more bytes are needed. Its payload is not used again. */
  next(): RtmpMessage | null {
    for (;;) {
      if (this.#chunk === null && !this.#readHeader()) return null;
      const stream = this.#readPayload();
      if (stream === null) return null;
      const message = this.#completed(stream);
      if (message && !this.#apply(message)) return message;
    }
  }

  /** False when the header is incomplete; nothing is consumed then. */
  #readHeader(): boolean {
    const { basic, chunkStreamId, format } = this.#readBasic();
    if (basic === 0) return false;
    const input = this.#input;
    let at = this.#at + basic;
    const headerBytes = HEADER_BYTES[format] as number;
    if (at + headerBytes > input.length) return false;
    const known = this.#streams.get(chunkStreamId);
    if (format === 3) {
      if (!known) throw new RtmpFault(`Chunk stream ${chunkStreamId} does not begin with a message header.`);
      const skipped = known.isExtended ? this.#repeatedField(known, at) : 0;
      if (skipped === null) return false;
      if (known.payload === null) this.#begin(known, (known.timestamp + known.field) >>> 0);
      this.#enterChunk(known, at + skipped);
      return true;
    }
    let field = input.readUIntBE(at, 3);
    const isExtended = field === EXTENDED;
    if (isExtended) {
      if (at + headerBytes + 4 > input.length) return false;
      field = input.readUInt32BE(at + headerBytes);
    }
    if (known?.payload) throw new RtmpFault(`A message on chunk stream ${chunkStreamId} begins inside another.`);
    // librtmp begins a chunk stream with type 1 for its pings: message stream and time are 0 then.
    if (!known && format === 2)
      throw new RtmpFault(`Chunk stream ${chunkStreamId} does not begin with a message header.`);
    const stream = known ?? this.#open(chunkStreamId);
    stream.field = field;
    stream.isExtended = isExtended;
    if (format <= 1) {
      stream.length = input.readUIntBE(at + 3, 3);
      stream.type = input[at + 6] as number;
    }
    if (format === 0) stream.streamId = input.readUInt32LE(at + 7);
    at += headerBytes + (isExtended ? 4 : 0);
    this.#begin(stream, format === 0 ? field : (stream.timestamp + field) >>> 0);
    this.#enterChunk(stream, at);
    return true;
  }

  /** Header type and chunk stream id in 1, 2 or 3 bytes (5.3.1.1). `basic` is its length, 0 when it is incomplete. */
  #readBasic(): { basic: number; chunkStreamId: number; format: number } {
    const input = this.#input;
    const available = input.length - this.#at;
    const incomplete = { basic: 0, chunkStreamId: 0, format: 0 };
    if (available < 1) return incomplete;
    const first = input[this.#at] as number;
    const format = first >> 6;
    const id = first & 0x3f;
    if (id > 1) return { basic: 1, chunkStreamId: id, format };
    const basic = id + 2;
    if (available < basic) return incomplete;
    const [low = 0, high = 0] = input.subarray(this.#at + 1, this.#at + basic);
    return { basic, chunkStreamId: 64 + low + high * 256, format };
  }

  /**
   * Length of the extended timestamp that a chunk of type 3 repeats (5.3.1.3). Some encoders omit it: then the four bytes
   * differ from the timestamp and are payload. Null when they have not arrived.
   */
  #repeatedField(stream: ChunkStream, at: number): 0 | 4 | null {
    if (at + 4 > this.#input.length) return null;
    return this.#input.readUInt32BE(at) === stream.field ? 4 : 0;
  }

  #open(chunkStreamId: number): ChunkStream {
    if (this.#streams.size >= this.#limits.chunkStreams)
      throw new RtmpFault(`The peer uses more than ${this.#limits.chunkStreams} chunk streams.`);
    const position = { timestamp: 0, field: 0, isExtended: false };
    const stream = { ...position, length: 0, type: 0, streamId: 0, payload: null, received: 0 };
    this.#streams.set(chunkStreamId, stream);
    return stream;
  }

  #begin(stream: ChunkStream, timestamp: number): void {
    const limit = this.#limits.messageBytes(stream.type);
    if (stream.length > limit)
      throw new RtmpFault(`A message of type ${stream.type} has ${stream.length} bytes; the limit is ${limit}.`);
    stream.timestamp = timestamp;
    stream.received = 0;
    stream.payload = this.#reserve(Math.min(stream.length, FIRST_BYTES));
  }

  #reserve(bytes: number): Buffer {
    this.#buffered += bytes;
    if (this.#buffered > this.#limits.bufferedBytes)
      throw new RtmpFault(`Incomplete messages exceed ${this.#limits.bufferedBytes} bytes.`);
    return Buffer.allocUnsafe(bytes);
  }

  #enterChunk(stream: ChunkStream, at: number): void {
    this.#at = at;
    this.#chunk = stream;
    this.#chunkRest = Math.min(this.#chunkBytes, stream.length - stream.received);
  }

  /** Copies what has arrived of the current chunk. Returns its stream at the end of the chunk, else null. */
  #readPayload(): ChunkStream | null {
    const stream = this.#chunk as ChunkStream;
    const bytes = Math.min(this.#chunkRest, this.#input.length - this.#at);
    let payload = stream.payload as Buffer;
    if (stream.received + bytes > payload.length) payload = this.#grow(stream, stream.received + bytes);
    this.#input.copy(payload, stream.received, this.#at, this.#at + bytes);
    this.#at += bytes;
    stream.received += bytes;
    this.#chunkRest -= bytes;
    if (this.#chunkRest > 0) return null;
    this.#chunk = null;
    return stream;
  }

  /** Doubles, so that copying remains linear in the bytes received. */
  #grow(stream: ChunkStream, needed: number): Buffer {
    const before = stream.payload as Buffer;
    const capacity = Math.min(stream.length, Math.max(needed, before.length * 2));
    const payload = this.#reserve(capacity);
    before.copy(payload, 0, 0, stream.received);
    this.#buffered -= before.length;
    stream.payload = payload;
    return payload;
  }

  #completed(stream: ChunkStream): RtmpMessage | null {
    const { payload, timestamp, streamId, type } = stream;
    if (payload === null || stream.received < stream.length) return null;
    this.#drop(stream);
    return { type, timestamp, streamId, payload };
  }

  #drop(stream: ChunkStream): void {
    this.#buffered -= stream.payload?.length ?? 0;
    stream.payload = null;
    stream.received = 0;
  }

  /** Whether the message was for the reader. */
  #apply({ type, payload }: RtmpMessage): boolean {
    if (type !== MESSAGE.setChunkSize && type !== MESSAGE.abort) return false;
    if (payload.length < 4) throw new RtmpFault(`A message of type ${type} is truncated.`);
    const value = payload.readUInt32BE();
    if (type === MESSAGE.setChunkSize) {
      if (value === 0 || value > 0x7f_ff_ff_ff) throw new RtmpFault(`The chunk size ${value} is not valid.`);
      this.#chunkBytes = Math.min(value, MAX_CHUNK_BYTES);
    } else {
      const aborted = this.#streams.get(value);
      if (aborted) this.#drop(aborted);
    }
    return true;
  }
}
