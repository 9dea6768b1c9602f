/** x^32 + x^26 + x^23 + x^22 + x^16 + x^12 + x^11 + x^10 + x^8 + x^7 + x^5 + x^4 + x^2 + x + 1, not reflected. */
const POLYNOMIAL = 0x04c11db7;

const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let value = byte << 24;
  for (let bit = 0; bit < 8; bit++) value = (value << 1) ^ (value < 0 ? POLYNOMIAL : 0);
  return value;
});

/** The CRC of ISO/IEC 13818-1, Annex A, unsigned. It is 0 for a section that ends with its own CRC. */
export function mpegCrc32(data: Uint8Array): number {
  let crc = -1;
  for (const byte of data) crc = (crc << 8) ^ (TABLE[((crc >>> 24) ^ byte) & 0xff] as number);
  return crc >>> 0;
}
