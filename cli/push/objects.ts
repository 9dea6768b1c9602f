import { join } from "node:path";
import { contentTypeOf } from "#model/media-types.ts";
import { extensionOf } from "#model/object-keys.ts";
import type { BatchUpload, CompleteBatchUpload, ConfirmPart, NewBatchUpload, NewPart } from "#protocol/batch.ts";
import type { SignedPart } from "#protocol/upload.ts";
import type { EncodedMedia } from "./encode-file.ts";
import { put, RequestRefused } from "./http.ts";
import { allOrFirstError, counted, type Sender } from "./send.ts";
import type { File } from "./state.ts";

/** A local file and its object in a batch. */
export type BatchObject = { key: string; path: string; bytes: number };

/** Larger objects are uploaded in parts, so that an interruption costs one part. */
const SINGLE_BYTES = 16 * 2 ** 20;
export const MEDIA = "media/";
const SOURCE = "source/original";

/** The media, and the source if requested. */
export function objectsOf(encoded: EncodedMedia, folder: string, source: File | null): BatchObject[] {
  const media = encoded.files.map(({ name, bytes }) => ({ key: MEDIA + name, path: join(folder, "out", name), bytes }));
  return source ? [...media, { key: sourceKey(source), path: source.path, bytes: source.bytes }] : media;
}

/** Its name is for people, and may be longer than a part of a key. */
export const sourceKey = ({ path }: File) => SOURCE + extensionOf(path);

/** Uploads the missing objects of a batch, several at once. */
export async function sendObjects(sender: Sender, batchId: number, objects: readonly BatchObject[]): Promise<void> {
  const { patience, call, meter } = sender;
  for (const { bytes } of objects) meter.expect(bytes);
  const base = `/ingest_batches/${batchId}/uploads`;
  const listed = await patience.until(() => call.all<BatchUpload>(base));
  const uploads = new Map(listed.filter(({ status }) => status !== "aborted").map((one) => [one.object_key, one]));
  await allOrFirstError(
    objects.map((object) => async (goOn) => {
      const before = uploads.get(object.key);
      const isSame = before?.bytes_expected === object.bytes;
      if (isSame && before.status === "completed") return meter.sent(object.bytes);
      if (object.bytes > SINGLE_BYTES) return sendParts(sender, base, { object, goOn });
      return sender.slot(() => {
        goOn();
        return sendWhole(sender, base, { object, before: isSame ? before : undefined });
      });
    }),
  );
}

const uploadRequest = ({ key, bytes }: BatchObject, mode: BatchUpload["mode"]): NewBatchUpload => ({
  object_key: key,
  bytes_expected: bytes,
  content_type: contentTypeOf(key),
  mode,
});

async function sendWhole(
  { call, patience, meter }: Sender,
  base: string,
  { object, before }: { object: BatchObject; before: BatchUpload | undefined },
): Promise<void> {
  const { path, bytes } = object;
  const received: CompleteBatchUpload = { bytes_received: bytes };
  const complete = (id: number) => patience.until(() => call("POST", `${base}/${id}/complete`, received));
  if (before) {
    // An earlier run may have ended between the last byte and its confirmation.
    const isThere = await complete(before.id).then(
      () => true,
      (error) => {
        if (error instanceof RequestRefused && error.status === 422) return false;
        throw error;
      },
    );
    if (isThere) return meter.sent(bytes);
  }
  const id = await patience.until(async () => {
    // A repeated request returns a new URL of the same upload.
    const batchUpload = await call<BatchUpload>("POST", base, uploadRequest(object, "put"));
    if (batchUpload.status === "completed") meter.sent(bytes);
    else {
      const { upload_url: url = "", upload_headers: headers = {} } = batchUpload;
      await counted(meter, (onSent) => put({ url, headers, path, start: 0, bytes, onSent }));
    }
    return batchUpload.id;
  });
  await complete(id);
}

async function sendParts(
  sender: Sender,
  base: string,
  { object, goOn }: { object: BatchObject; goOn: () => void },
): Promise<void> {
  const { call, patience, meter, slot } = sender;
  const { path, bytes: all } = object;
  const batchUpload = await patience.until(() => call<BatchUpload>("POST", base, uploadRequest(object, "multipart")));
  if (batchUpload.status === "completed") return meter.sent(all);
  const size = batchUpload.part_size ?? all;
  const storedParts = new Map((batchUpload.parts ?? []).map((part) => [part.part_number, part.bytes]));
  const parts = `${base}/${batchUpload.id}/parts`;
  await allOrFirstError(
    Array.from({ length: batchUpload.part_count ?? 1 }, (_, at) => async () => {
      const start = at * size;
      const bytes = Math.min(size, all - start);
      if (storedParts.get(at + 1) === bytes) return meter.sent(bytes);
      return slot(async () => {
        goOn();
        const etag = await patience.until(async () => {
          const wanted: NewPart = { part_number: at + 1 };
          const { url, headers } = await call<SignedPart>("POST", parts, wanted);
          return counted(meter, (onSent) => put({ url, headers, path, start, bytes, onSent }));
        });
        const stored: ConfirmPart = { etag };
        await patience.until(() => call("POST", `${parts}/${at + 1}/complete`, stored));
      });
    }),
  );
  const received: CompleteBatchUpload = { bytes_received: all };
  await patience.until(() => call("POST", `${base}/${batchUpload.id}/complete`, received));
}
