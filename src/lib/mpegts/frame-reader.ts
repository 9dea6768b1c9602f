/** `bytes`: of the frame with its header. `seconds`: how long it lasts. */
export type FrameHeader = { bytes: number; seconds: number };

export type FrameSyntax<Header> = {
  /** Bytes that `readHeader` needs. */
  headerBytes: number;
  /** The first byte of each header. */
  firstByte: number;
  /** Null where no frame begins. */
  readHeader: (data: Buffer, at: number) => Header | null;
  /** Whether frames with these headers may follow each other. */
  isSame: (one: Header, other: Header) => boolean;
};

export type ReadFrame<Header> = {
  /** Seconds from the first frame that begins in the packet. */
  offsetSeconds: number;
  header: Header;
  data: Buffer;
};

/** Finds frames of audio that have their length in them. Frames may continue in the next packet. */
export class FrameReader<Header extends FrameHeader> {
  readonly #syntax: FrameSyntax<Header>;
  #rest: Buffer = Buffer.alloc(0);
  /** False after something was lost: bytes that look like a header may be of a frame's content. */
  #isSynchronized = false;

  constructor(syntax: FrameSyntax<Header>) {
    this.#syntax = syntax;
  }

  /** The frames that begin in the packet; a frame that began in the one before is the first, at 0 if none is known. */
  read(packet: Buffer): ReadFrame<Header>[] {
    const { headerBytes, firstByte, readHeader } = this.#syntax;
    const carried = this.#rest.length;
    const data = carried > 0 ? Buffer.concat([this.#rest, packet]) : packet;
    const frames: ReadFrame<Header>[] = [];
    let at = 0;
    let seconds = 0;
    while (at + headerBytes <= data.length) {
      const header = readHeader(data, at);
      if (header === null || !(this.#isSynchronized || this.#isFollowed(data, at, header))) {
        this.#isSynchronized = false;
        // Bytes that are no frame.
        const next = data.indexOf(firstByte, at + 1);
        at = next === -1 ? data.length : next;
        continue;
      }
      if (at + header.bytes > data.length) break;
      this.#isSynchronized = true;
      // The timestamp of a packet is that of the first frame that begins in it (ISO/IEC 13818-1, 2.4.3.7).
      const offsetSeconds = at < carried ? -header.seconds : seconds;
      if (at >= carried) seconds += header.seconds;
      frames.push({ offsetSeconds, header, data: data.subarray(at, at + header.bytes) });
      at += header.bytes;
    }
    // At most a frame, whose length has 13 bits.
    this.#rest = Buffer.from(data.subarray(at));
    return frames;
  }

  /** What follows does not continue what was read. */
  reset(): void {
    this.#rest = Buffer.alloc(0);
    this.#isSynchronized = false;
  }

  /** Whether another header, or the end, is where the frame at `at` ends. */
  #isFollowed(data: Buffer, at: number, header: Header): boolean {
    const { headerBytes, readHeader, isSame } = this.#syntax;
    const end = at + header.bytes;
    if (end + headerBytes > data.length) return end <= data.length;
    const next = readHeader(data, end);
    return next !== null && isSame(header, next);
  }
}
