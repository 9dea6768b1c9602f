/**
 * Reads a bit stream of ITU-T H.264, H.265 or AV1, the most significant bit first. Throws Error at its end.
 * @example
 * const reader = new BitReader(Buffer.of(0b1010_0101));
 * reader.bits(4) // => 10
 * reader.flag() // => false
 */
export class BitReader {
  readonly #data: Uint8Array;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  /** Bits that were read or skipped. */
  get position(): number {
    return this.#at;
  }

  flag(): boolean {
    const byte = this.#data[this.#at >> 3];
    if (byte === undefined) throw new Error("The parameters of the decoder are truncated.");
    const bit = (byte >> (7 - (this.#at & 7))) & 1;
    this.#at++;
    return bit === 1;
  }

  /** u(n), up to 32 bits. */
  bits(count: number): number {
    let value = 0;
    for (let index = 0; index < count; index++) value = value * 2 + (this.flag() ? 1 : 0);
    return value;
  }

  skip(count: number): void {
    this.#at += count;
  }

  /** ue(v) (H.264, 9.1), up to 32 bits. */
  unsigned(): number {
    let zeros = 0;
    while (!this.flag()) if (++zeros > 31) throw new Error("The parameters of the decoder contain an invalid number.");
    return 2 ** zeros - 1 + this.bits(zeros);
  }

  /** se(v) (H.264, 9.1.1). */
  signed(): number {
    const code = this.unsigned();
    return code % 2 === 1 ? (code + 1) / 2 : -code / 2;
  }
}

/** The payload of a NAL unit without its emulation prevention bytes (H.264, 7.4.1; H.265, 7.4.2). */
export function withoutEmulationPrevention(nal: Uint8Array): Uint8Array {
  const payload = new Uint8Array(nal.length);
  let length = 0;
  let zeros = 0;
  for (const byte of nal) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    payload[length++] = byte;
  }
  return payload.subarray(0, length);
}
