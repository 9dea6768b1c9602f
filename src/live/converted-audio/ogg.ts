/** Ogg pages with one packet of Opus each (RFC 3533, RFC 7845). */

const PAGE_HEADER_BYTES = 27;
const MAX_SEGMENT = 255;
const FIRST_PAGE = 2;
const CHANNELS = 2;
const POLYNOMIAL = 0x04c11db7;

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc >>> 0;
});

function checksum(page: Buffer): number {
  let crc = 0;
  for (const byte of page) crc = ((crc << 8) ^ (CRC_TABLE[((crc >>> 24) ^ byte) & 0xff] as number)) >>> 0;
  return crc;
}

/** Writes a stream of stereo Opus at 48 kHz. */
export class OggWriter {
  #pages = 0;

  /** The identification and comment headers. */
  headers(): Buffer {
    const head = Buffer.alloc(19);
    head.write("OpusHead", 0, "latin1");
    head[8] = 1;
    head[9] = CHANNELS;
    head.writeUInt32LE(48_000, 12);
    const tags = Buffer.alloc(16);
    tags.write("OpusTags", 0, "latin1");
    return Buffer.concat([this.page(head, 0), this.page(tags, 0)]);
  }

  /** `end`: samples of the stream to the end of the packet, which has at most 64 kB. */
  page(packet: Buffer, end: number): Buffer {
    const full = Math.floor(packet.length / MAX_SEGMENT);
    const page = Buffer.alloc(PAGE_HEADER_BYTES + full + 1 + packet.length);
    page.write("OggS", 0, "latin1");
    page[5] = this.#pages === 0 ? FIRST_PAGE : 0;
    page.writeBigInt64LE(BigInt(Math.round(end)), 6);
    page.writeUInt32LE(1, 14);
    page.writeUInt32LE(this.#pages++, 18);
    page[26] = full + 1;
    page.fill(MAX_SEGMENT, PAGE_HEADER_BYTES, PAGE_HEADER_BYTES + full);
    page[PAGE_HEADER_BYTES + full] = packet.length - full * MAX_SEGMENT;
    packet.copy(page, PAGE_HEADER_BYTES + full + 1);
    page.writeUInt32LE(checksum(page), 22);
    return page;
  }
}
