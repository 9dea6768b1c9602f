import type { Readable } from "node:stream";
import { MAX_PARTS } from "#model/multipart.ts";
import { ownPath } from "#model/object-keys.ts";
import { checkKey, checkPrefix } from "../keys.ts";
import {
  type NamedPart,
  NoSuchMultipart,
  type ObjectInfo,
  type ObjectStore,
  ObjectTooLarge,
  type Part,
  PartsMismatch,
  StorageUnavailable,
} from "../store.ts";
import { isMissing, type S3Client, S3Error } from "./client.ts";
import { PART_BYTES, partsOf } from "./parts-of.ts";
import { elements, escaped, textOf } from "./xml.ts";

type Head = (key: string) => Promise<ObjectInfo | null>;
export type S3Multipart = Pick<
  ObjectStore,
  "createMultipart" | "signPart" | "putPart" | "listParts" | "completeMultipart" | "abortMultipart" | "listMultiparts"
>;

/** Codes of CompleteMultipartUpload for a fault of the list. */
const MISMATCH = ["InvalidPart", "InvalidPartOrder", "EntityTooSmall", "MalformedXML", "InvalidRequest"];

/** Begins a multipart upload. Returns its id. */
export async function createUpload(
  { ask }: S3Client,
  key: string,
  contentType = "application/octet-stream",
): Promise<string> {
  checkKey(key);
  const headers = { "content-type": contentType };
  const { xml } = await ask({ method: "POST", key, query: { uploads: "" }, headers });
  return textOf(xml, "UploadId");
}

/** The query of a request for one part. Throws PartsMismatch for a number that no upload has. */
export function partQuery(uploadId: string, partNumber: number): { partNumber: string; uploadId: string } {
  if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > MAX_PARTS)
    throw new PartsMismatch(`The upload has no part ${partNumber}.`);
  return { partNumber: String(partNumber), uploadId };
}

/** Multipart uploads of a bucket. `head` looks an object up. */
export function s3Multipart(client: S3Client, head: Head): S3Multipart {
  const { ask } = client;

  /** Throws NoSuchMultipart when the upload has ended, and nothing else: the original error is more specific. */
  const rethrowIfGone = async (key: string, uploadId: string) => {
    const query = { uploadId, "max-parts": "1" };
    const refused = await ask({ method: "GET", key, query }).then(() => null, isGone);
    if (refused instanceof NoSuchMultipart) throw refused;
  };

  const complete = async (key: string, uploadId: string, parts: readonly NamedPart[]): Promise<ObjectInfo> => {
    checkKey(key);
    await ask({
      method: "POST",
      key,
      query: { uploadId },
      headers: { "content-type": "application/xml" },
      body: Buffer.from(completion(parts)),
    }).catch(async (error) => {
      if (error instanceof S3Error && MISMATCH.includes(error.code))
        throw new PartsMismatch(`Storage rejected these parts: ${error.code}.`, { cause: error });
      // Ceph reports an ended upload as being completed, forever.
      if (error instanceof StorageUnavailable) await rethrowIfGone(key, uploadId);
      throw isGone(error);
    });
    // Not from the response: some servers leave its ETag empty.
    return (await head(key)) ?? Promise.reject(new Error(`The object ${key} no longer exists.`));
  };

  const abort = async (key: string, uploadId: string) => {
    checkKey(key);
    await ask({ method: "DELETE", key, query: { uploadId } }).catch((error) => {
      if (!isMissing(error)) throw error;
    });
  };

  return {
    createMultipart: (key, { contentType }) => createUpload(client, key, contentType),

    async signPart(key, uploadId, partNumber, { expiresAt }) {
      checkKey(key);
      const query = partQuery(uploadId, partNumber);
      return { ...client.presigned({ method: "PUT", key, query }, expiresAt), method: "PUT", headers: {} };
    },

    async putPart(key, uploadId, partNumber, stream, { bytes, maxBytes, signal }) {
      // The body may fail before a listener is attached.
      stream.on("error", () => {});
      checkKey(key);
      const query = partQuery(uploadId, partNumber);
      if (bytes !== undefined && bytes > maxBytes) throw new ObjectTooLarge(maxBytes);
      const body = bytes === undefined ? await inMemory(stream, { maxBytes, signal }) : { stream, bytes };
      const { headers } = await ask({ method: "PUT", key, query, body, signal }).catch(async (error) => {
        // The refusal may be lost when the server closes the connection during the transfer.
        if (error instanceof StorageUnavailable) await rethrowIfGone(key, uploadId);
        throw isGone(error);
      });
      const length = "stream" in body ? body.bytes : body.byteLength;
      return { partNumber, bytes: length, etag: String(headers.etag) };
    },

    async listParts(key, uploadId) {
      checkKey(key);
      const parts: Part[] = [];
      for (let marker = "0"; ; ) {
        const query = { uploadId, "part-number-marker": marker, "max-parts": "1000" };
        const { xml } = await ask({ method: "GET", key, query }).catch((error) => {
          throw isGone(error);
        });
        for (const part of elements(xml, "Part")) {
          const partNumber = Number(textOf(part, "PartNumber"));
          parts.push({ partNumber, bytes: Number(textOf(part, "Size")), etag: quoted(textOf(part, "ETag")) });
        }
        const next = textOf(xml, "NextPartNumberMarker");
        if (textOf(xml, "IsTruncated") !== "true" || next === marker) return parts;
        marker = next;
      }
    },

    completeMultipart: complete,
    abortMultipart: abort,

    async *listMultiparts(prefix) {
      checkPrefix(prefix);
      let markers: Record<string, string> = {};
      for (;;) {
        const query = { uploads: "", prefix: client.prefix + prefix, ...markers };
        const { xml } = await ask({ method: "GET", query });
        for (const one of elements(xml, "Upload")) {
          yield {
            key: ownPath(client.prefix, textOf(one, "Key")),
            uploadId: textOf(one, "UploadId"),
            startedAt: new Date(textOf(one, "Initiated")),
          };
        }
        const key = textOf(xml, "NextKeyMarker");
        const uploadId = textOf(xml, "NextUploadIdMarker");
        if (textOf(xml, "IsTruncated") !== "true" || key === "") return;
        markers = { "key-marker": key, "upload-id-marker": uploadId };
      }
    },
  };
}

/** The body of CompleteMultipartUpload. Throws PartsMismatch. */
function completion(parts: readonly NamedPart[]): string {
  if (parts.length === 0) throw new PartsMismatch("Specify at least one part.");
  const named = parts.map(({ partNumber, etag }, index) => {
    // S3 accepts gaps; an object with an unknown middle is not valid.
    if (partNumber !== index + 1) throw new PartsMismatch(`Part ${index + 1} is missing or out of order.`);
    return `<Part><PartNumber>${partNumber}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`;
  });
  return `<CompleteMultipartUpload>${named.join("")}</CompleteMultipartUpload>`;
}

/** Amazon reports NoSuchUpload, Ceph also NoSuchKey. */
const isGone = (error: unknown) =>
  error instanceof S3Error && error.status === 404 && error.code !== "NoSuchBucket" ? new NoSuchMultipart() : error;

/** Some servers omit the quotes in lists. */
const quoted = (etag: string) => (etag.startsWith('"') ? etag : `"${etag}"`);

/** S3 requires the length before the first byte. */
async function inMemory(stream: Readable, limits: { maxBytes: number; signal?: AbortSignal | undefined }) {
  const parts = partsOf(stream, limits);
  const chunks: Buffer[] = [];
  try {
    for (;;) {
      const part = await parts.next();
      chunks.push(part);
      if (part.length < PART_BYTES) return Buffer.concat(chunks);
    }
  } finally {
    parts.stop();
  }
}
