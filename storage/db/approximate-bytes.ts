const OBJECT_BYTES = 24;
const SLOT_BYTES = 8;

/** About the memory that a row takes, with its JSON. An upper bound for text, which V8 stores in one or two bytes a character. */
export function approximateBytes(value: unknown): number {
  if (typeof value === "string") return OBJECT_BYTES + 2 * value.length;
  if (typeof value !== "object" || value === null) return SLOT_BYTES;
  if (ArrayBuffer.isView(value)) return OBJECT_BYTES + value.byteLength;
  let bytes = OBJECT_BYTES;
  for (const name in value) bytes += SLOT_BYTES + approximateBytes((value as Record<string, unknown>)[name]);
  return bytes;
}
