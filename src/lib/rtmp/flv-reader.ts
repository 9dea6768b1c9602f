import { RtmpFault } from "./fault.ts";

/** Reads the fields at the beginning of a tag, in order. Throws RtmpFault at the end of the data. */
export class FlvReader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  byte(): number {
    return this.#data[this.#take(1)] as number;
  }

  uint16(): number {
    return this.#data.readUInt16BE(this.#take(2));
  }

  /** Signed 24 bits. */
  int24(): number {
    return this.#data.readIntBE(this.#take(3), 3);
  }

  uint24(): number {
    return this.#data.readUIntBE(this.#take(3), 3);
  }

  fourCc(): string {
    const at = this.#take(4);
    return this.#data.toString("latin1", at, at + 4);
  }

  skip(bytes: number): void {
    this.#take(bytes);
  }

  get isEnd(): boolean {
    return this.#at >= this.#data.length;
  }

  bytes(count: number): Buffer {
    const at = this.#take(count);
    return this.#data.subarray(at, at + count);
  }

  rest(): Buffer {
    return this.#data.subarray(this.#at);
  }

  #take(bytes: number): number {
    const at = this.#at;
    if (at + bytes > this.#data.length) throw new RtmpFault("An audio or video message is truncated.");
    this.#at = at + bytes;
    return at;
  }
}
