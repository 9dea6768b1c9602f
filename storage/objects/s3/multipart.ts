import type { Readable } from "node:stream";
import { checkKey, checkPrefix } from "../keys.ts";
import {
  MAX_PARTS,
  type NamedPart,
  NoSuchMultipart,
  type ObjectInfo,
  type ObjectStore,
  ObjectTooLarge,
  type Part,
  PartsMismatch,
  type PutOptions,
  StorageUnavailable,
} from "../store.ts";
import { isMissing, type S3Client, S3Error } from "./client.ts";
import { PART_BYTES, type Parts, partsOf } from "./parts-of.ts";
import { elements, escaped, textOf } from "./xml.ts";

type Head = (key: string) => Promise<ObjectInfo | null>;
type Sending = Pick<PutOptions, "contentType" | "signal" | "confirm"> | Record<string, undefined>;
type MultipartStore = Pick<
  ObjectStore,
  "createMultipart" | "signPart" | "putPart" | "listParts" | "completeMultipart" | "abortMultipart" | "listMultiparts"
>;

/** Codes of CompleteMultipartUpload that name a fault of the list. */
const MISMATCH = ["InvalidPart", "InvalidPartOrder", "EntityTooSmall", "MalformedXML", "InvalidRequest"];

export function s3Multipart(client: S3Client, head: Head) {
  const { ask } = client;

  const create = async (key: string, contentType = "application/octet-stream") => {
    checkKey(key);
    const { xml } = await ask({
      method: "POST",
      key,
      query: { uploads: "" },
      headers: { "content-type": contentType },
    });
    return textOf(xml, "UploadId");
  };

  const queryOf = (uploadId: string, partNumber: number) => {
    if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > MAX_PARTS)
      throw new PartsMismatch(`The upload has no part ${partNumber}.`);
    return { partNumber: String(partNumber), uploadId };
  };

  /** Throws NoSuchMultipart when the upload is over, and nothing else: what led here tells more. */
  const askWhether = async (key: string, uploadId: string) => {
    const query = { uploadId, "max-parts": "1" };
    const refused = await ask({ method: "GET", key, query }).then(() => null, gone);
    if (refused instanceof NoSuchMultipart) throw refused;
  };

  const complete = async (key: string, uploadId: string, parts: readonly NamedPart[]): Promise<ObjectInfo> => {
    checkKey(key);
    if (parts.length === 0) throw new PartsMismatch("Name at least one part.");
    const named = parts.map(({ partNumber, etag }, index) => {
      // S3 takes gaps; an object of whose middle nobody knows is none.
      if (partNumber !== index + 1) throw new PartsMismatch(`Part ${index + 1} is not named, or not in its turn.`);
      return `<Part><PartNumber>${partNumber}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`;
    });
    const xml = `<CompleteMultipartUpload>${named.join("")}</CompleteMultipartUpload>`;
    await ask({
      method: "POST",
      key,
      query: { uploadId },
      headers: { "content-type": "application/xml" },
      body: Buffer.from(xml),
    }).catch(async (error) => {
      if (error instanceof S3Error && MISMATCH.includes(error.code))
        throw new PartsMismatch(`Storage does not take these parts: ${error.code}.`, { cause: error });
      // Ceph says of one that is over that it is being completed, for ever.
      if (error instanceof StorageUnavailable) await askWhether(key, uploadId);
      throw gone(error);
    });
    // Not what the answer says: some servers leave its ETag empty.
    return (await head(key)) ?? Promise.reject(new Error(`The object ${key} is gone.`));
  };

  const abort = async (key: string, uploadId: string) => {
    checkKey(key);
    await ask({ method: "DELETE", key, query: { uploadId } }).catch((error) => {
      if (!isMissing(error)) throw error;
    });
  };

  /** What `send` puts under a fresh upload becomes the object, or nothing stays. */
  async function whole(key: string, { contentType, confirm }: Sending, send: SendParts): Promise<ObjectInfo> {
    const uploadId = await create(key, contentType);
    try {
      const parts = await send(uploadId);
      await confirm?.();
      return await complete(key, uploadId, parts);
    } catch (error) {
      // What cannot be removed now the sweep finds.
      await abort(key, uploadId).catch(() => {});
      throw error;
    }
  }

  const store: MultipartStore = {
    createMultipart: (key, { contentType }) => create(key, contentType),

    async signPart(key, uploadId, partNumber, { expiresAt }) {
      checkKey(key);
      const query = queryOf(uploadId, partNumber);
      return { ...client.presigned({ method: "PUT", key, query }, expiresAt), method: "PUT", headers: {} };
    },

    async putPart(key, uploadId, partNumber, stream, { bytes, maxBytes, signal }) {
      // The body may fail before anybody listens.
      stream.on("error", () => {});
      checkKey(key);
      const query = queryOf(uploadId, partNumber);
      if (bytes !== undefined && bytes > maxBytes) throw new ObjectTooLarge(maxBytes);
      const body = bytes === undefined ? await inMemory(stream, { maxBytes, signal }) : { stream, bytes };
      const { headers } = await ask({ method: "PUT", key, query, body, signal }).catch(async (error) => {
        // A refusal may be lost with the connection that was closed under the bytes.
        if (error instanceof StorageUnavailable) await askWhether(key, uploadId);
        throw gone(error);
      });
      const length = "stream" in body ? body.bytes : body.byteLength;
      return { partNumber, bytes: length, etag: String(headers.etag) };
    },

    async listParts(key, uploadId) {
      checkKey(key);
      const found: Part[] = [];
      for (let marker = "0"; ; ) {
        const query = { uploadId, "part-number-marker": marker, "max-parts": "1000" };
        const { xml } = await ask({ method: "GET", key, query }).catch((error) => {
          throw gone(error);
        });
        for (const part of elements(xml, "Part")) {
          const partNumber = Number(textOf(part, "PartNumber"));
          found.push({ partNumber, bytes: Number(textOf(part, "Size")), etag: quoted(textOf(part, "ETag")) });
        }
        const next = textOf(xml, "NextPartNumberMarker");
        if (textOf(xml, "IsTruncated") !== "true" || next === marker) return found;
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
            key: textOf(one, "Key").slice(client.prefix.length),
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

  return {
    store,
    /** `first` and what follows it, of which there may be nothing. */
    putAll: (key: string, first: Buffer, rest: Parts, sending: Sending) =>
      whole(key, sending, async (uploadId) => {
        const parts: NamedPart[] = [];
        const put = async (body: Buffer) => {
          const partNumber = parts.length + 1;
          const query = queryOf(uploadId, partNumber);
          const { headers } = await ask({ method: "PUT", key, query, body, signal: sending.signal });
          parts.push({ partNumber, etag: String(headers.etag) });
        };
        let putting = put(first);
        try {
          for (let isLast = false; !isLast; ) {
            // Told where it is awaited; meanwhile the next part is gathered.
            putting.catch(() => {});
            const part = await rest.next();
            isLast = part.length < PART_BYTES;
            await putting;
            if (part.length > 0) putting = put(part);
          }
        } finally {
          // A part that arrives after the abort would stay.
          await putting;
        }
        return parts;
      }),

    copyAll: (from: ObjectInfo, to: string, partBytes: number) =>
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
          const { xml } = await ask({ method: "PUT", key: to, query: queryOf(uploadId, partNumber), headers });
          parts.push({ partNumber, etag: textOf(xml, "ETag") });
        }
        return parts;
      }),
  };
}

type SendParts = (uploadId: string) => Promise<NamedPart[]>;

/** Amazon says NoSuchUpload, Ceph also NoSuchKey. */
const gone = (error: unknown) =>
  error instanceof S3Error && error.status === 404 && error.code !== "NoSuchBucket" ? new NoSuchMultipart() : error;

/** Some servers leave the quotes off in lists. */
const quoted = (etag: string) => (etag.startsWith('"') ? etag : `"${etag}"`);

/** S3 wants to know the length before the first byte. */
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
