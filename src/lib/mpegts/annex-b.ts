const START_CODE = Buffer.from([0, 0, 1]);

/**
 * The NAL units of a byte stream (ITU-T H.264 and H.265, Annex B), without start codes and zeros around them. Null when
 * there are more than `most` start codes.
 */
export function splitNalUnits(data: Buffer, most: number): Buffer[] | null {
  const units: Buffer[] = [];
  let start = data.indexOf(START_CODE);
  for (let count = 0; start !== -1; count++) {
    if (count === most) return null;
    start += START_CODE.length;
    const next = data.indexOf(START_CODE, start);
    let end = next === -1 ? data.length : next;
    // trailing_zero_8bits, and zero_byte of the next start code. A NAL unit does not end with a zero (7.4.1).
    while (end > start && data[end - 1] === 0) end--;
    if (end > start) units.push(data.subarray(start, end));
    start = next;
  }
  return units;
}

const LENGTH_BYTES = 4;

/**
 * The NAL units with their lengths in 4 bytes (ISO/IEC 14496-15, 5.3.3.1.2).
 * @example
 * joinNalUnits([Buffer.of(9, 16)]) // => Buffer.of(0, 0, 0, 2, 9, 16)
 */
export function joinNalUnits(units: readonly Buffer[]): Buffer {
  const total = units.reduce((sum, { length }) => sum + LENGTH_BYTES + length, 0);
  const data = Buffer.allocUnsafe(total);
  let at = 0;
  for (const unit of units) {
    at = data.writeUInt32BE(unit.length, at);
    at += unit.copy(data, at);
  }
  return data;
}
