import { pacer } from "#lib/base";
import type { Json } from "#platform/http/openapi-schema.ts";

/** The largest result in bytes of UTF-8; the contract allows 100 kB. */
export const MAX_RESULT_BYTES = 96_000;
const MAX_ASSET_CHARACTERS = 600;

/** What of an asset an agent decides by; the rest is in the resource `vodbox://assets/{id}`. */
const ASSET_FIELDS = [
  ...["id", "external_id", "title", "playback_status", "input_status", "progress", "error", "duration_seconds"],
  ...["width", "height", "playback_policy", "collection_id", "tags", "warnings", "created_at", "description"],
];

const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isAsset = (value: unknown): value is Json =>
  isRecord(value) && "playback_status" in value && "input_status" in value;

/** Without null and empty fields, which say nothing to a reader. */
function withoutEmpty(record: Json): Json {
  const isEmpty = (value: unknown) =>
    value === null || value === "" || (typeof value === "object" && Object.keys(value as object).length === 0);
  return Object.fromEntries(Object.entries(record).filter(([, value]) => !isEmpty(value)));
}

/** At most 600 characters as JSON: long values are cut, least important ones first left out. */
function shortAsset(asset: Json): Json {
  const all = withoutEmpty(Object.fromEntries(ASSET_FIELDS.map((name) => [name, asset[name] ?? null])));
  // Each value is cut once: tags have up to 100 KB.
  const fields = Object.entries(all).map(([name, value]) => [name, cut(value)] as const);
  for (;;) {
    const short = Object.fromEntries(fields);
    if (JSON.stringify(short).length <= MAX_ASSET_CHARACTERS || fields.length <= 2) return short;
    fields.pop();
  }
}

const MAX_TEXT = 120;
function cut(value: unknown): unknown {
  if (typeof value === "string") return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  const text = JSON.stringify(value);
  return text !== undefined && text.length > 2 * MAX_TEXT ? `${text.slice(0, 2 * MAX_TEXT)}…` : value;
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");

/**
 * A response as an agent reads it: lists as `{items, next_cursor}`, assets in at most 600 characters, and nothing larger than
 * 96 kB: further items are counted, other large results cut.
 */
export async function shortened(body: unknown, nextCursor: string | null): Promise<string> {
  const short = (value: unknown) =>
    isAsset(value) ? shortAsset(value) : isRecord(value) ? withoutEmpty(value) : value;
  if (!Array.isArray(body)) return limited(JSON.stringify(short(body)) ?? "");
  const items: unknown[] = [];
  let bytes = 0;
  const pace = pacer();
  for (const item of body) {
    await pace();
    const one = short(item);
    bytes += bytesOf(one) + 1;
    if (bytes > MAX_RESULT_BYTES - 500) break;
    items.push(one);
  }
  const left = body.length - items.length;
  return limited(
    JSON.stringify({
      items,
      ...(left > 0 && { left_out: left, note: "The result was too large; use a smaller limit." }),
      ...(left === 0 && nextCursor !== null && { next_cursor: nextCursor }),
    }),
  );
}

/** Text of at most 96 kB in UTF-8, with a note where it was cut. */
export function limited(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MAX_RESULT_BYTES) return text;
  // A cut character at the end becomes U+FFFD, which is removed.
  const start = bytes
    .subarray(0, MAX_RESULT_BYTES - 100)
    .toString()
    .replace(/\ufffd$/, "");
  return `${start}\n… (cut: the result has ${bytes.length} bytes)`;
}
