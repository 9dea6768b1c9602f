/** Boxes of MP4 (ISO/IEC 14496-12). */

/** A box of ISO/IEC 14496-12. */
export const box = (type: string, ...content: Buffer[]): Buffer => {
  const body = Buffer.concat(content);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length + 8);
  head.write(type, 4, "latin1");
  return Buffer.concat([head, body]);
};
export const u32 = (...values: number[]) => {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, i * 4);
  return bytes;
};

/** The top-level boxes of a file, by type. */
export function parts(file: Buffer): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (let i = 0; i + 8 <= file.length; ) {
    const size = Math.max(8, file.readUInt32BE(i));
    found.set(file.toString("latin1", i + 4, i + 8), file.subarray(i, i + size));
    i += size;
  }
  return found;
}

/** `moov` rebuilt with `edit` applied to the box at the end of the path, with sizes adjusted. */
export function rebuilt(file: Buffer, path: string[], edit: (body: Buffer) => Buffer): Buffer {
  const within = (body: Buffer, [type, ...rest]: string[]): Buffer => {
    if (type === undefined) return edit(body);
    const out: Buffer[] = [];
    let isDone = false;
    for (let i = 0; i + 8 <= body.length; ) {
      const size = Math.max(8, body.readUInt32BE(i));
      const name = body.toString("latin1", i + 4, i + 8);
      const inner = body.subarray(i + 8, i + size);
      out.push(name === type && !isDone ? box(name, within(inner, rest)) : body.subarray(i, i + size));
      isDone ||= name === type;
      i += size;
    }
    return Buffer.concat(out);
  };
  return within(file, path);
}
