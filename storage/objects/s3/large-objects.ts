import type { NamedPart, ObjectInfo, PutOptions } from "../store.ts";
import type { S3Client } from "./client.ts";
import { createUpload, partQuery, type S3Multipart } from "./multipart.ts";
import { PART_BYTES, type Parts } from "./parts-of.ts";
import { textOf } from "./xml.ts";

type Sending = Pick<PutOptions, "contentType" | "signal" | "confirm"> | Record<string, undefined>;
type SendParts = (uploadId: string) => Promise<NamedPart[]>;

/** Whole objects that are too large for one request: sent or copied in parts. */
export function s3LargeObjects(client: S3Client, { completeMultipart, abortMultipart }: S3Multipart) {
  const { ask } = client;

  /** What `send` uploads to a new multipart upload becomes the object, or is deleted. */
  async function whole(key: string, { contentType, confirm }: Sending, send: SendParts): Promise<ObjectInfo> {
    const uploadId = await createUpload(client, key, contentType);
    try {
      const parts = await send(uploadId);
      await confirm?.();
      return await completeMultipart(key, uploadId, parts);
    } catch (error) {
      // What cannot be deleted now is found by the sweep.
      await abortMultipart(key, uploadId).catch(() => {});
      throw error;
    }
  }

  return {
    /** `first` and the rest, which may be empty. */
    put: (key: string, first: Buffer, rest: Parts, sending: Sending) =>
      whole(key, sending, async (uploadId) => {
        const parts: NamedPart[] = [];
        const send = async (body: Buffer) => {
          const partNumber = parts.length + 1;
          const query = partQuery(uploadId, partNumber);
          const { headers } = await ask({ method: "PUT", key, query, body, signal: sending.signal });
          parts.push({ partNumber, etag: String(headers.etag) });
        };
        let putting = send(first);
        try {
          for (let isLast = false; !isLast; ) {
            // Reported where it is awaited; meanwhile the next part is collected.
            putting.catch(() => {});
            const part = await rest.next();
            isLast = part.length < PART_BYTES;
            await putting;
            if (part.length > 0) putting = send(part);
          }
        } finally {
          // A part that arrives after the abort would remain.
          await putting;
        }
        return parts;
      }),

    copy: (from: ObjectInfo, to: string, partBytes: number) =>
      whole(to, {}, async (uploadId) => {
        const parts: NamedPart[] = [];
        for (let start = 0; start < from.bytes; start += partBytes) {
          const partNumber = parts.length + 1;
          const end = Math.min(start + partBytes, from.bytes) - 1;
          const headers = {
            "x-amz-copy-source": client.copySource(from.key),
            "x-amz-copy-source-range": `bytes=${start}-${end}`,
            "x-amz-copy-source-if-match": from.etag,
          };
          const { xml } = await ask({ method: "PUT", key: to, query: partQuery(uploadId, partNumber), headers });
          parts.push({ partNumber, etag: textOf(xml, "ETag") });
        }
        return parts;
      }),
  };
}
