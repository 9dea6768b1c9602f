import type { Readable } from "node:stream";

/** Where an object stands and what it is. `etag` is quoted, as in HTTP. */
export type ObjectInfo = { key: string; bytes: number; etag: string; modifiedAt: Date };

/** Inclusive byte positions, as in HTTP's Range (RFC 9110, 14.1.2). */
export type ByteRange = { start: number; end: number };

/** An address that does one thing for a while, with the headers that must go with it. */
export type SignedRequest = { url: string; method: "PUT" | "GET"; headers: Record<string, string>; expiresAt: Date };

export type PutOptions = {
  /** More bytes than this: nothing is kept and `ObjectTooLarge` is thrown. */
  maxBytes?: number;
  contentType?: string;
  signal?: AbortSignal;
  /** Asked when all bytes are there and before they take their place: what it throws keeps them out. */
  confirm?: () => Promise<void>;
};

export type SignPutOptions = { expiresAt: Date; maxBytes: number; contentType?: string };
export type SignGetOptions = { expiresAt: Date; filename?: string; contentType?: string };
export type ListPage = { objects: ObjectInfo[]; cursor: string | null };

/**
 * Bytes under keys. Keys are `/`-separated, relative, free of `.` and `..` segments (`keys.ts` says the rules).
 * An object is there whole or not at all: a put that fails, or dies with the process, leaves what was there before.
 */
export interface ObjectStore {
  readonly kind: "local" | "s3";
  /** Streams `body` to `key`; durable when the promise resolves. Throws ObjectTooLarge, StorageFull. */
  put(key: string, body: Readable | Uint8Array, options?: PutOptions): Promise<ObjectInfo>;
  /** Null when there is no such object. The stream ends early with an error if the object is torn. */
  get(key: string, range?: ByteRange): Promise<{ info: ObjectInfo; body: Readable } | null>;
  head(key: string): Promise<ObjectInfo | null>;
  /** Objects under `prefix` in key order (by UTF-8 bytes), a page at a time. */
  list(prefix: string, options?: { limit?: number; cursor?: string }): Promise<ListPage>;
  /** Deleting what is not there is no error. */
  delete(key: string): Promise<void>;
  copy(from: string, to: string): Promise<ObjectInfo>;
  signPut(key: string, options: SignPutOptions): Promise<SignedRequest>;
  signGet(key: string, options: SignGetOptions): Promise<SignedRequest>;
  /** The file behind `key` where the store is on this machine's disk, else null. It need not exist. */
  localPath(key: string): string | null;
  /** Throws a UserError that says what is wrong when the store cannot be used. */
  check(): Promise<void>;
}

export class ObjectTooLarge extends Error {
  readonly maxBytes: number;
  constructor(maxBytes: number) {
    super(`The object is larger than the ${maxBytes} bytes that were agreed.`);
    this.name = "ObjectTooLarge";
    this.maxBytes = maxBytes;
  }
}

export class StorageFull extends Error {
  constructor(options?: ErrorOptions) {
    super("Storage is full.", options);
    this.name = "StorageFull";
  }
}
