import type { Readable } from "node:stream";
import { OffsetMismatch } from "../../../storage/objects/store.ts";
import { discardRest } from "../../http/discard-rest.ts";
import { type Context, Reply } from "../../http/route.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError } from "../../lib/errors.ts";
import { tooLarge } from "./body.ts";

type Chunk = { key: string; maxBytes: number; range: string; body: Readable; confirm: () => Promise<void> };
/** Inclusive, as in RFC 9110, 14.4; without a range it asks what is held. */
type ContentRange = { total: number; range: { start: number; end: number } | null };

/**
 * A file in chunks, one after the other, to one address: 308 with what is held until it is whole, then 200. As Google
 * Cloud Storage's resumable uploads, which upchunk and others speak. A chunk may begin anywhere in what is held.
 */
export async function putChunk(context: Context, chunk: Chunk): Promise<Reply> {
  const { key, maxBytes, body, confirm } = chunk;
  const objects = storageOf(context.app);
  const { appends } = objects;
  if (!appends) throw new HttpError(422, "validation_failed", "Send the whole body in one PUT.");
  const { total, range } = parse(chunk.range);
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
  const announced = context.headers.get("content-length");
  if (announced !== null && Number(announced) !== length)
    throw new HttpError(
      422,
      "validation_failed",
      `Content-Range speaks of ${length} bytes, the body has ${announced}.`,
    );
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

function parse(header: string): ContentRange {
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
