/** Messages between the pool and a parser thread. */

/**
 * `more` asks for the next piece of a result, so that the serving thread never copies a large one at once. `utf8` is the
 * field `text` of the input, to be decoded on the thread.
 */
export type ToThread =
  | { type: "parse"; parser: string; input: unknown; utf8?: Uint8Array | undefined }
  | { type: "more" };

export type FromThread =
  | { type: "ready" }
  /** Items to append to the array `field` of the result. */
  | { type: "items"; field: string; items: unknown[] }
  /** The rest of the result; its long arrays were sent before, as pieces. */
  | { type: "result"; result: unknown }
  | { type: "tooComplex"; reason: string }
  | { type: "notUtf8" }
  | { type: "failed"; error: { name: string; message: string; stack: string | undefined } };

/** Items and weight of a piece. Copying one takes the serving thread about a millisecond. */
const PIECE_ITEMS = 1000;
const PIECE_WEIGHT = 128 * 1024;

/** `output` as messages. Only arrays that are fields of the result itself are split. */
export function* piecesOf(output: unknown): Generator<FromThread, void> {
  if (typeof output !== "object" || output === null || Array.isArray(output) || ArrayBuffer.isView(output)) {
    yield { type: "result", result: output };
    return;
  }
  const rest: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(output)) {
    if (!Array.isArray(value)) {
      rest[field] = value;
      continue;
    }
    rest[field] = [];
    let items: unknown[] = [];
    let weight = 0;
    for (const item of value) {
      items.push(item);
      weight += weightOf(item);
      if (items.length < PIECE_ITEMS && weight < PIECE_WEIGHT) continue;
      yield { type: "items", field, items };
      items = [];
      weight = 0;
    }
    if (items.length > 0) yield { type: "items", field, items };
  }
  yield { type: "result", result: rest };
}

/** Approximate size in bytes. Results are shallow, so recursion is bounded by their shape. */
function weightOf(value: unknown): number {
  if (typeof value === "string") return 16 + value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (ArrayBuffer.isView(value)) return 64 + value.byteLength;
  const inner = value instanceof Map ? [...value].flat() : Object.entries(value).flat();
  return inner.reduce<number>((sum, each) => sum + weightOf(each), 64);
}
