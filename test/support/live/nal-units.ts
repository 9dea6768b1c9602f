/** The parameter sets of a decoder configuration (ISO/IEC 14496-15, 5.3.3.1). */
export function setsOf(avcC: Buffer): Buffer[] {
  const sets: Buffer[] = [];
  let at = 6;
  const read = (count: number) => {
    for (let index = 0; index < count; index++) {
      const end = at + 2 + avcC.readUInt16BE(at);
      sets.push(avcC.subarray(at + 2, end));
      at = end;
    }
  };
  read((avcC[5] as number) & 0x1f);
  const pictures = avcC[at++] as number;
  read(pictures);
  return sets;
}

/** The NAL units of a sample, whose lengths have four bytes. */
export function unitsOf(data: Buffer): Buffer[] {
  const units: Buffer[] = [];
  for (let at = 0; at < data.length; ) {
    const end = at + 4 + data.readUInt32BE(at);
    units.push(data.subarray(at + 4, end));
    at = end;
  }
  return units;
}
