import { createReadStream } from "node:fs";
import { create as disposition } from "content-disposition";
import { UserError } from "#lib/base";
import { newProbeKey, ownPath } from "#model/object-keys.ts";
import { checkKey, checkPrefix } from "./keys.ts";
import { isMissing, S3Error, type S3Options, s3Client } from "./s3/client.ts";
import { examineS3, s3Clock } from "./s3/examine.ts";
import { s3LargeObjects } from "./s3/large-objects.ts";
import { s3Multipart } from "./s3/multipart.ts";
import { PART_BYTES, partsOf } from "./s3/parts-of.ts";
import { elements, textOf } from "./s3/xml.ts";
import {
  type ListPage,
  type ObjectInfo,
  type ObjectStore,
  ObjectTooLarge,
  StorageUnavailable,
  UNREVOCABLE_MS,
} from "./store.ts";

export type S3StoreOptions = S3Options & {
  /** Larger objects are copied in parts (CopyObject supports 5 GiB). */
  maxCopyBytes?: number;
};

const GIB = 2 ** 30;
const PAGE_OBJECTS = 1000;

/** Objects in a bucket of an S3 server. They are durable when S3 has answered 200. */
export function s3Store(options: S3StoreOptions): ObjectStore {
  const client = s3Client(options);
  const { open, ask } = client;
  const { maxCopyBytes = 5 * GIB } = options;
  const multipart = s3Multipart(client, head);
  const large = s3LargeObjects(client, multipart);

  async function head(key: string): Promise<ObjectInfo | null> {
    checkKey(key);
    try {
      const { headers } = await ask({ method: "HEAD", key });
      return { key, bytes: Number(headers["content-length"]), ...stateOf(headers) };
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async function putWhole(key: string, body: Uint8Array, { contentType, signal }: Sending): Promise<ObjectInfo> {
    const type = { "content-type": contentType ?? "application/octet-stream" };
    const { headers } = await ask({ method: "PUT", key, headers: type, body, signal });
    // S3 does not report the modification time here; that of the response is slightly later.
    return { key, bytes: body.byteLength, ...stateOf({ ...headers, "last-modified": headers.date }) };
  }

  const store: ObjectStore = {
    kind: "s3",
    addressOrigin: client.publicOrigin,
    clock: s3Clock(options),
    recognizesUploads: false,
    appends: null,
    async put(key, body, { maxBytes = Number.POSITIVE_INFINITY, contentType, signal, confirm } = {}) {
      checkKey(key);
      signal?.throwIfAborted();
      if (body instanceof Uint8Array) {
        if (body.byteLength > maxBytes) throw new ObjectTooLarge(maxBytes);
        await confirm?.();
        return putWhole(key, body, { contentType, signal });
      }
      // The body may fail before a listener is attached.
      body.on("error", () => {});
      const parts = partsOf(body, { maxBytes, signal });
      try {
        const first = await parts.next();
        if (first.length < PART_BYTES) {
          await confirm?.();
          return await putWhole(key, first, { contentType, signal });
        }
        return await large.put(key, first, parts, { contentType, signal, confirm });
      } finally {
        parts.stop();
      }
    },

    putFile: (key, path, options) => store.put(key, createReadStream(path), options),

    async get(key, range) {
      checkKey(key);
      if (range && !(Number.isSafeInteger(range.start) && range.start >= 0 && range.start <= range.end))
        throw new RangeError(`The object has no bytes ${range.start}-${range.end}.`);
      try {
        const headers: Record<string, string> = range ? { range: `bytes=${range.start}-${range.end}` } : {};
        const response = await open({ method: "GET", key, headers });
        const length = Number(response.headers["content-length"]);
        if (Number.isNaN(length)) {
          response.destroy();
          throw new StorageUnavailable(`The S3 server ${options.endpoint} does not report the size of ${key}.`);
        }
        const whole = /\/(\d+)$/.exec(response.headers["content-range"] ?? "")?.[1];
        const info = { key, bytes: whole === undefined ? length : Number(whole), ...stateOf(response.headers) };
        return { info, body: response };
      } catch (error) {
        if (isMissing(error) && !isBucketMissing(error)) return null;
        if (error instanceof S3Error && error.status === 416)
          throw new RangeError(`The object has no bytes ${range?.start}-${range?.end}.`);
        throw error;
      }
    },

    head,

    async list(prefix, { limit = PAGE_OBJECTS, cursor } = {}): Promise<ListPage> {
      checkPrefix(prefix);
      const after = cursor && client.prefix + Buffer.from(cursor, "base64url").toString();
      const { xml } = await ask({
        method: "GET",
        query: {
          "list-type": "2",
          // Keys may contain characters that XML cannot represent.
          "encoding-type": "url",
          prefix: client.prefix + prefix,
          "max-keys": String(Math.min(limit, PAGE_OBJECTS)),
          ...(after && { "start-after": after }),
        },
      });
      const objects = elements(xml, "Contents").flatMap((one): ObjectInfo[] => {
        const key = ownPath(client.prefix, decoded(textOf(one, "Key")));
        // Other programs may create objects whose names are not valid keys: file browsers create `folder/`.
        if (!isKey(key)) return [];
        const modifiedAt = secondsOf(new Date(textOf(one, "LastModified")));
        return [{ key, bytes: Number(textOf(one, "Size")), etag: textOf(one, "ETag"), modifiedAt }];
      });
      const last = elements(xml, "Contents").at(-1);
      const isMore = textOf(xml, "IsTruncated") === "true" && last !== undefined;
      const lastKey = last && ownPath(client.prefix, decoded(textOf(last, "Key")));
      return { objects, cursor: isMore ? Buffer.from(lastKey as string).toString("base64url") : null };
    },

    async delete(key) {
      checkKey(key);
      await ask({ method: "DELETE", key }).catch((error) => {
        if (!isMissing(error) || isBucketMissing(error)) throw error;
      });
    },

    async copy(from, to) {
      checkKey(to);
      const source = await head(from);
      if (source === null) throw new Error(`The object to copy does not exist: ${from}.`);
      if (source.bytes > maxCopyBytes) return large.copy(source, to, maxCopyBytes);
      await ask({ method: "PUT", key: to, headers: { "x-amz-copy-source": client.copySource(from) } });
      return (await head(to)) ?? Promise.reject(new Error(`The copy ${to} no longer exists.`));
    },

    /** S3 cannot limit a body: the completion of the upload compares its size. */
    async signPut(key, { expiresAt, contentType, lease }) {
      checkKey(key);
      const headers: Record<string, string> = contentType ? { "content-type": contentType } : {};
      return {
        ...client.presigned({ method: "PUT", key, headers }, shortened(expiresAt, lease)),
        method: "PUT",
        headers,
      };
    },

    async signGet(key, { expiresAt, filename, contentType, lease }) {
      checkKey(key);
      const query: Record<string, string> = {};
      if (filename !== undefined) query["response-content-disposition"] = disposition(filename);
      if (contentType !== undefined) query["response-content-type"] = contentType;
      return {
        ...client.presigned({ method: "GET", key, query }, shortened(expiresAt, lease)),
        method: "GET",
        headers: {},
      };
    },

    ...multipart,
    localPath: (key) => {
      checkKey(key);
      return null;
    },

    async check() {
      const key = newProbeKey();
      try {
        await store.put(key, Buffer.from(key));
        await store.delete(key);
      } catch (error) {
        const { message } = error as Error;
        throw new UserError(`The bucket ${options.bucket} at ${options.endpoint} cannot be used: ${message}`);
      }
    },

    examine: (wish) => examineS3({ client, store, options }, wish),
  };
  return store;
}

/** S3 cannot revoke a URL: one that should end with a lease is valid for a short time, and signed again. */
const shortened = (expiresAt: Date, lease: string | undefined) =>
  lease === undefined ? expiresAt : new Date(Math.min(expiresAt.getTime(), Date.now() + UNREVOCABLE_MS));

type Sending = { contentType?: string | undefined; signal?: AbortSignal | undefined };
type Headers = NodeJS.Dict<string | string[]>;

const isBucketMissing = (error: unknown) => error instanceof S3Error && error.code === "NoSuchBucket";

/** To the second, as in HTTP: a list has a finer resolution than the other calls. */
const secondsOf = (date: Date) => new Date(Math.floor(date.getTime() / 1000) * 1000);
const stateOf = (headers: Headers) => ({
  etag: String(headers.etag ?? ""),
  modifiedAt: secondsOf(new Date(String(headers["last-modified"] ?? 0))),
});

/** In Amazon's encoding a plus represents a space. */
const decoded = (name: string) => decodeURIComponent(name.replaceAll("+", " "));

function isKey(key: string): boolean {
  try {
    checkKey(key);
    return true;
  } catch {
    return false;
  }
}
