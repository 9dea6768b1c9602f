import type { Readable } from "node:stream";
import { OffsetMismatch } from "../../../storage/objects/store.ts";
import { discardRest } from "../../http/discard-rest.ts";
import { type Context, Reply } from "../../http/route.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError } from "../../lib/errors.ts";
import { tooLarge } from "./body.ts";

type Chunk = { key: string; maxBytes: number; range: ContentRange; body: Readable; confirm: () => Promise<void> };
/** Inclusive, as in RFC 9110, 14.4; without a range it asks what is held. */
export type ContentRange = { total: number; range: { start: number; end: number } | null };

/**
 * A file in chunks, one after the other, to one address: 308 with what is held until it is whole, then 200. As Google
 * Cloud Storage's resumable uploads, which upchunk and others speak. A chunk may begin anywhere in what is held.
 */
export async function putChunk(context: Context, chunk: Chunk): Promise<Reply> {
  const { key, maxBytes, body, confirm } = chunk;
  const objects = storageOf(context.app);
  const { appends } = objects;
  if (!appends) throw new HttpError(422, "validation_failed", "Send the whole body in one PUT.");
  const { total, range } = chunk.range;
  if (total > maxBytes) return tooLarge(maxBytes);
  const finish = async () => done((await appends.finish(key, total, { confirm })).etag);
  /** A repeat of what made the object, whose answer was lost. */
  const ifWhole = async () => {
    const info = await objects.head(key);
    return info?.bytes === total ? done(info.etag) : null;
  };
  if (range === null) {
    const held = await appends.settled(key);
    // The process died between the last byte and the object.
    if (held !== null && held >= total) return finish();
    return (held === null ? await ifWhole() : null) ?? incomplete(held ?? 0);
  }
  const length = range.end - range.start + 1;
  requireLength(context, length);
  try {
    const held = await appends.append(key, body, { offset: range.start, maxBytes: length, bytes: length });
    return range.end + 1 === total && held >= total ? await finish() : incomplete(held);
  } catch (error) {
    if (!(error instanceof OffsetMismatch)) throw error;
    discardRest(context.incoming);
    return (error.held === 0 ? await ifWhole() : null) ?? incomplete(error.held);
  }
}

const done = (etag: string) => new Reply(200, undefined, { etag });
const incomplete = (held: number) => new Reply(308, undefined, held > 0 ? { range: `bytes=0-${held - 1}` } : {});

function requireLength({ headers }: Pick<Context, "headers">, length: number): void {
  const sent = headers.get("content-length");
  if (sent === null || Number(sent) === length) return;
  throw new HttpError(422, "validation_failed", `Content-Range speaks of ${length} bytes, the body has ${sent}.`);
}

/** 422 `bytes_mismatch` for the size of another file than the one that was announced. */
export function requireTotal({ total }: ContentRange, announced: number): void {
  if (total === announced) return;
  const message = `Content-Range speaks of ${total} bytes in all, but bytes_expected is ${announced}; start another upload for another file.`;
  throw new HttpError(422, "bytes_mismatch", message, { details: { "Content-Range": [message] } });
}

/** Bytes of a part that is sent with a Content-Range, which it does not need. 422 unless the part begins at `start`. */
export function lengthOfPart(context: Pick<Context, "headers">, { range }: ContentRange, start: number): number {
  if (range?.start !== start)
    throw new HttpError(422, "validation_failed", `Content-Range must begin at byte ${start} for this part.`);
  const length = range.end - start + 1;
  requireLength(context, length);
  return length;
}

/** 422 `validation_failed` for what is no range of bytes, ends before it begins, or beyond its own total. */
export function parseContentRange(header: string): ContentRange {
  const match = /^bytes (?:(\d{1,15})-(\d{1,15})|\*)\/(\d{1,15})$/.exec(header.trim());
  const [, start, end, total] = match ?? [];
  const parsed = {
    total: Number(total),
    range: start === undefined ? null : { start: Number(start), end: Number(end) },
  };
  const isSound =
    match && (!parsed.range || (parsed.range.start <= parsed.range.end && parsed.range.end < parsed.total));
  if (isSound) return parsed;
  throw new HttpError(422, "validation_failed", "Content-Range must be like bytes 0-999/5000, or bytes */5000 to ask.");
}
