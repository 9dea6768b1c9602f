/** An element of EBML: where its content is, from the start of its head. `size` is null where it is not known (RFC 8794, 6.2). */
export type ElementHead = { id: number; from: number; size: number | null };

/** The longest head: an identifier of four bytes, and a size of eight. */
export const MAX_HEAD_BYTES = 12;

/** The head at the start of `data` (RFC 8794, 5 and 6); null where more bytes are needed. */
export function headOf(data: Buffer): ElementHead | null {
  const idBytes = lengthOf(data[0]);
  const sizeBytes = lengthOf(data[idBytes]);
  const from = idBytes + sizeBytes;
  if (data.length < from) return null;
  const id = data.readUIntBE(0, Math.min(idBytes, 6));
  return { id, from, size: numberIn(data, idBytes, sizeBytes) };
}

/** A number of variable length (RFC 8794, 4), and its length; null at the end of the data. */
export function variableNumber(data: Buffer): { value: number | null; bytes: number } | null {
  const bytes = lengthOf(data[0]);
  return data.length < bytes ? null : { value: numberIn(data, 0, bytes), bytes };
}

/** The length of a number, by the zeros that it begins with. */
const lengthOf = (first = 0): number => Math.max(1, Math.clz32(first) - 23);

/** Null for the one whose bits are all set: it means an unknown size. */
function numberIn(data: Buffer, from: number, bytes: number): number | null {
  let value = (data[from] as number) & (0xff >> bytes);
  for (let at = from + 1; at < from + bytes; at++) value = value * 256 + (data[at] as number);
  return value === 2 ** (7 * bytes) - 1 ? null : value;
}

export type Element = { id: number; content: Buffer };

/** The elements of content that is there as a whole; ends silently at one that is cut. */
export function* elementsIn(data: Buffer): Generator<Element> {
  for (let at = 0; at < data.length; ) {
    const head = headOf(data.subarray(at, at + MAX_HEAD_BYTES));
    if (head?.size == null || at + head.from + head.size > data.length) return;
    const from = at + head.from;
    yield { id: head.id, content: data.subarray(from, from + head.size) };
    at = from + head.size;
  }
}

/** An unsigned number of up to six bytes (RFC 8794, 7.2). */
export const unsigned = (content: Buffer): number =>
  content.length === 0 ? 0 : content.readUIntBE(0, Math.min(6, content.length));
