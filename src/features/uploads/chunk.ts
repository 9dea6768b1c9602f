import type { Readable } from "node:stream";
import { HttpError } from "#lib/base";
import { discardRest } from "#platform/http/discard-rest.ts";
import { type Context, Reply } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { OffsetMismatch } from "#storage/objects/store.ts";
import { tooLarge } from "./body.ts";

type Chunk = { key: string; maxBytes: number; range: ContentRange; body: Readable; confirm: () => Promise<void> };
/** Inclusive, as in RFC 9110, 14.4; without a range the request queries the offset. */
export type ContentRange = { total: number; range: { start: number; end: number } | null };

/**
 * Receives a file in sequential chunks at one URL: 308 with the received range until it is complete, then 200. This is
 * the protocol of Google Cloud Storage's resumable uploads, which upchunk and others use. A chunk may overlap received
 * bytes.
 */
export async function putChunk(context: Context, chunk: Chunk): Promise<Reply> {
  const { key, maxBytes, body, confirm } = chunk;
  const objects = storageOf(context.app);
  const { appends } = objects;
  if (!appends) throw new HttpError(422, "validation_failed", "Send the whole body in one PUT.");
  const { total, range } = chunk.range;
  if (total > maxBytes) return tooLarge(maxBytes);
  const finish = async () => done((await appends.finish(key, total, { confirm })).etag);
  /** A repeat of the last chunk, whose response was lost. */
  const completeIfWhole = async () => {
    const info = await objects.head(key);
    return info?.bytes === total ? done(info.etag) : null;
  };
  if (range === null) {
    const offset = await appends.settled(key);
    // The process died between the last byte and the object.
    if (offset !== null && offset >= total) return finish();
    return (offset === null ? await completeIfWhole() : null) ?? incomplete(offset ?? 0);
  }
  const length = range.end - range.start + 1;
  requireLength(context, length);
  try {
    const offset = await appends.append(key, body, { offset: range.start, maxBytes: length, bytes: length });
    return range.end + 1 === total && offset >= total ? await finish() : incomplete(offset);
  } catch (error) {
    if (!(error instanceof OffsetMismatch)) throw error;
    discardRest(context.incoming);
    return (error.held === 0 ? await completeIfWhole() : null) ?? incomplete(error.held);
  }
}

const done = (etag: string) => new Reply(200, undefined, { etag });
const incomplete = (offset: number) => new Reply(308, undefined, offset > 0 ? { range: `bytes=0-${offset - 1}` } : {});

function requireLength({ headers }: Pick<Context, "headers">, length: number): void {
  const sent = headers.get("content-length");
  if (sent === null || Number(sent) === length) return;
  throw new HttpError(422, "validation_failed", `Content-Range covers ${length} bytes, but the body has ${sent}.`);
}

/** Throws 422 `bytes_mismatch` when the total differs from the announced size. */
function requireTotal({ total }: ContentRange, announced: number): void {
  if (total === announced) return;
  const message = `The total of Content-Range is ${total}, but bytes_expected is ${announced}; initiate another upload for another file.`;
  throw new HttpError(422, "bytes_mismatch", message, { details: { "Content-Range": [message] } });
}

/** Size of a part that is sent with an (unnecessary) Content-Range. Throws 422 unless the part begins at `start`. */
export function lengthOfPart(context: Pick<Context, "headers">, { range }: ContentRange, start: number): number {
  if (range?.start !== start)
    throw new HttpError(422, "validation_failed", `Content-Range must begin at byte ${start} for this part.`);
  const length = range.end - start + 1;
  requireLength(context, length);
  return length;
}

/**
 * Throws 422 `bytes_mismatch` when the total differs from the announced size, `validation_failed` for a malformed range,
 * or one that ends before it begins or beyond its total.
 */
export function parseContentRange(header: string, announced?: number): ContentRange {
  const match = /^bytes (?:(\d{1,15})-(\d{1,15})|\*)\/(\d{1,15})$/.exec(header.trim());
  const [, start, end, total] = match ?? [];
  const parsed = {
    total: Number(total),
    range: start === undefined ? null : { start: Number(start), end: Number(end) },
  };
  // First: a range that exceeds the total of another file has the wrong total, not the wrong form.
  if (match && announced !== undefined) requireTotal(parsed, announced);
  const isValid =
    match && (!parsed.range || (parsed.range.start <= parsed.range.end && parsed.range.end < parsed.total));
  if (isValid) return parsed;
  throw new HttpError(
    422,
    "validation_failed",
    "Content-Range must be bytes FIRST-LAST/TOTAL, such as bytes 0-999/5000, or bytes */TOTAL to query the offset.",
  );
}
