import { mpegCrc32 } from "./crc32.ts";

/** Header up to section_length, and the most that follows it in a program association or map section (2.4.4.4, 2.4.4.9). */
const HEADER_BYTES = 3;
const MAX_BYTES = HEADER_BYTES + 1021;
/** The length of the fields that all sections have, and of the CRC. */
const MIN_BYTES = 12;
const STUFFING = 0xff;

/**
 * Assembles the sections of one PID (ISO/IEC 13818-1, 2.4.4), and passes on those whose CRC is valid.
 * @example
 * const sections = [];
 * const reader = new SectionReader((section) => sections.push(Buffer.from(section)));
 * const section = programSection([{ number: 1, mapPid: 4096 }]);
 * reader.push(Buffer.concat([Buffer.of(0), section]), { isStart: true, isLost: false });
 * sections // => [section]
 */
export class SectionReader {
  readonly #onSection: (section: Buffer) => void;
  readonly #data = Buffer.alloc(MAX_BYTES);
  /** Bytes of the incomplete section; null: nothing is read until the next start. */
  #length: number | null = null;

  constructor(onSection: (section: Buffer) => void) {
    this.#onSection = onSection;
  }

  /** The payload of a packet. `isLost`: packets before it are missing. */
  push(payload: Buffer, { isStart, isLost }: { isStart: boolean; isLost: boolean }): void {
    if (isLost) this.#length = null;
    if (!isStart) return this.#append(payload);
    const start = 1 + (payload[0] as number);
    this.#append(payload.subarray(1, start));
    this.#length = 0;
    this.#append(payload.subarray(start));
  }

  #append(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && this.#length !== null) {
      if (this.#length === 0 && rest[0] === STUFFING) {
        this.#length = null;
        return;
      }
      const header = this.#take(rest, HEADER_BYTES);
      rest = rest.subarray(header);
      if (this.#length < HEADER_BYTES) return;
      const size = HEADER_BYTES + (this.#data.readUInt16BE(1) & 0x0fff);
      if (size < MIN_BYTES || size > MAX_BYTES) {
        this.#length = null;
        return;
      }
      rest = rest.subarray(this.#take(rest, size));
      if (this.#length < size) return;
      this.#length = 0;
      const section = this.#data.subarray(0, size);
      if (mpegCrc32(section) === 0) this.#onSection(section);
    }
  }

  /** Copies bytes until the section has `wanted`. Returns how many. */
  #take(bytes: Buffer, wanted: number): number {
    const length = this.#length ?? 0;
    const count = Math.max(0, Math.min(bytes.length, wanted - length));
    bytes.copy(this.#data, length, 0, count);
    this.#length = length + count;
    return count;
  }
}
