import type { Hash } from "node:crypto";
import type { Readable } from "node:stream";
import type { StoreKind } from "#model/enums.ts";

/** The key and metadata of an object. `etag` is quoted, as in HTTP. */
export type ObjectInfo = { key: string; bytes: number; etag: string; modifiedAt: Date };

/** Inclusive byte positions, as in HTTP's Range (RFC 9110, 14.1.2). */
export type ByteRange = { start: number; end: number };

/** A presigned URL, with the headers that must be sent. */
export type SignedRequest = { url: string; method: "PUT" | "GET"; headers: Record<string, string>; expiresAt: Date };

export type PutOptions = {
  /** With more bytes than this, nothing is stored and `ObjectTooLarge` is thrown. */
  maxBytes?: number;
  /** The announced length: a disk without enough space refuses it before the first byte. */
  bytes?: number | undefined;
  contentType?: string;
  signal?: AbortSignal;
  /** Called when all bytes are durable and before they replace the object: an error prevents that. */
  confirm?: (() => Promise<void>) | undefined;
  /** Runs `confirm` and the replacement in a critical section of the caller. */
  lock?: (<T>(work: () => Promise<T>) => Promise<T>) | undefined;
};

/** A complete part. `partNumber` counts from 1; `etag` is quoted. */
export type Part = { partNumber: number; bytes: number; etag: string };
export type NamedPart = Pick<Part, "partNumber" | "etag">;
export type Multipart = { key: string; uploadId: string; startedAt: Date };

export type CreateMultipartOptions = {
  contentType?: string;
  /** The size of the whole object, at most. */
  bytes: number;
  /** The size of every part but the last. */
  partSize: number;
};
export type SignPartOptions = { expiresAt: Date; maxBytes: number };
export type PutPartOptions = {
  maxBytes: number;
  /** Its exact length, if known: without it S3 needs the part in memory. */
  bytes?: number | undefined;
  signal?: AbortSignal | undefined;
  /** As in PutOptions: before the part counts. */
  confirm?: (() => Promise<void>) | undefined;
};

/** How long a URL with a lease is valid where it cannot be revoked. A PUT that begins before may end later. */
export const UNREVOCABLE_MS = 3_600_000;

/**
 * `lease` names what the URL ends with. This server checks it at each request; storage that serves URLs itself cannot,
 * and signs for a short time instead.
 */
type Leased = { lease?: string | undefined };
export type SignPutOptions = Leased & { expiresAt: Date; maxBytes: number; contentType?: string };
export type SignGetOptions = Leased & { expiresAt: Date; filename?: string; contentType?: string };
export type ListPage = { objects: ObjectInfo[]; cursor: string | null };

/** The clock of a storage server, which refuses requests of clients whose clocks differ too much. */
export type StorageClock = {
  /** The server's name in messages. */
  owner: string;
  /** A larger difference is a fault, well before requests are refused. */
  maxSkewSeconds: number;
  /** The difference at which requests are refused, as a sentence. */
  limit: string;
  /** The time of the server, to the second; null when it does not report it. */
  read(): Promise<Date | null>;
};

/** The result of one check; `detail` says what is wrong and what to do. */
export type StorageFinding = { check: string; ok: boolean; detail: string };

export type AppendOptions = {
  /** Offset at which the body begins: at most the current length. */
  offset: number;
  maxBytes: number;
  /** The announced length of the body, as in PutOptions. */
  bytes?: number | undefined;
  /** Updated with the body. */
  hash?: Hash;
  /**
   * Called when the whole body has arrived. With it a body is appended whole or not at all: when it is truncated, or
   * refused by an error of this function, it is removed again.
   */
  check?: () => void;
};

/**
 * An object that grows at its end until it is finished. Of two concurrent writers the later one wins. The received
 * bytes of a truncated body are kept; so is an unfinished object, until it is discarded or its key deleted.
 */
export interface Appends {
  /** The current length; null when nothing was begun. Increases while another request is writing. */
  held(key: string): Promise<number | null>;
  /** The same for a request that resumes: aborts other writers, so that the value is final, and durable. */
  settled(key: string): Promise<number | null>;
  /**
   * Writes `body` from `offset` on, replacing what follows; returns the new length. Throws OffsetMismatch, StorageFull.
   */
  append(key: string, body: Readable, options: AppendOptions): Promise<number>;
  /**
   * Creates the object from the first `bytes`. Throws OffsetMismatch when there are fewer, NoSuchMultipart when there
   * are none.
   */
  finish(key: string, bytes: number, options?: Pick<PutOptions, "confirm">): Promise<ObjectInfo>;
  discard(key: string): Promise<void>;
  /** Discards abandoned ones, and remains of crashes. Returns their number. */
  sweep(isWanted: (key: string) => Promise<boolean>): Promise<number>;
}

/**
 * Bytes under keys. Keys are `/`-separated, relative, free of `.` and `..` segments (see `keys.ts`). An object is
 * complete or absent: a put that fails, or dies with the process, leaves the previous object.
 */
export interface ObjectStore {
  readonly kind: StoreKind;
  /** Origin of the URLs from `sign…`, if it is not this server's. */
  readonly addressOrigin: string | null;
  /** Null when the times of objects are those of this machine. */
  readonly clock: StorageClock | null;
  /** Whether `signPart` recognizes the uploads of this store, without a request to a server. */
  readonly recognizesUploads: boolean;
  /** Null when storage does not support appends. */
  readonly appends: Appends | null;
  /** Streams `body` to `key`; durable when the promise resolves. Throws ObjectTooLarge, StorageFull. */
  put(key: string, body: Readable | Uint8Array, options?: PutOptions): Promise<ObjectInfo>;
  /**
   * The same for the file at `path`, which is on the disk and is never changed again: a store on the same file system
   * does not copy it. Throws the error of the file.
   */
  putFile(key: string, path: string, options?: Pick<PutOptions, "contentType">): Promise<ObjectInfo>;
  /** Null when the object does not exist. The stream ends with an error if the object is truncated. */
  get(key: string, range?: ByteRange): Promise<{ info: ObjectInfo; body: Readable } | null>;
  head(key: string): Promise<ObjectInfo | null>;
  /** Objects under `prefix` in key order (by UTF-8 bytes), a page at a time. */
  list(prefix: string, options?: { limit?: number; cursor?: string }): Promise<ListPage>;
  /** Deleting an object that does not exist is not an error. */
  delete(key: string): Promise<void>;
  copy(from: string, to: string): Promise<ObjectInfo>;
  signPut(key: string, options: SignPutOptions): Promise<SignedRequest>;
  signGet(key: string, options: SignGetOptions): Promise<SignedRequest>;
  /**
   * Begins an object that is uploaded in parts. Parts arrive in any order, concurrently and repeatedly; each but the
   * last has `partSize` bytes, and an upload that is never completed or aborted remains until it is swept.
   */
  createMultipart(key: string, options: CreateMultipartOptions): Promise<string>;
  /**
   * A URL to PUT one part to; the response's ETag is the part's. Throws NoSuchMultipart when the store
   * recognizes its uploads.
   */
  signPart(key: string, uploadId: string, partNumber: number, options: SignPartOptions): Promise<SignedRequest>;
  /** Streams one part. Throws NoSuchMultipart, ObjectTooLarge, StorageFull. */
  putPart(key: string, uploadId: string, partNumber: number, body: Readable, options: PutPartOptions): Promise<Part>;
  /** The complete parts, by number. Throws NoSuchMultipart. */
  listParts(key: string, uploadId: string): Promise<Part[]>;
  /**
   * Creates the object from `parts`, which are numbered from 1 without gaps. Throws PartsMismatch and changes nothing
   * when one is missing, has another ETag or a wrong size; NoSuchMultipart when the upload has ended: after a crash
   * that may mean that it was completed, which `head` shows.
   */
  completeMultipart(key: string, uploadId: string, parts: readonly NamedPart[]): Promise<ObjectInfo>;
  /** Deletes all parts. May be repeated. */
  abortMultipart(key: string, uploadId: string): Promise<void>;
  /** Uploads in progress, of keys under `prefix`. */
  listMultiparts(prefix: string): AsyncIterable<Multipart>;
  /** The file of `key` when the store is on a local disk, else null. It need not exist. */
  localPath(key: string): string | null;
  /** Throws a UserError that says what is wrong when the store cannot be used. */
  check(): Promise<void>;
  /** Checks everything that can be misconfigured, item by item. `origin` is that of our own pages. */
  examine(options: { origin: string; now: Date }): Promise<StorageFinding[]>;
}

export class ObjectTooLarge extends Error {
  readonly maxBytes: number;
  constructor(maxBytes: number) {
    super(`The object is larger than the ${maxBytes} bytes allowed.`);
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

/** The multipart upload was completed or aborted, or never existed. */
export class NoSuchMultipart extends Error {
  constructor() {
    super("The multipart upload does not exist: it was completed or aborted.");
    this.name = "NoSuchMultipart";
  }
}

/** The listed parts do not form the object; the message for the client says which one and why. */
export class PartsMismatch extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PartsMismatch";
  }
}

/** The body does not begin at a valid offset. */
export class OffsetMismatch extends Error {
  readonly held: number;
  constructor(length: number) {
    super(`${length} bytes are stored.`);
    this.name = "OffsetMismatch";
    this.held = length;
  }
}

/** Storage does not respond, or asks for a delay: a later attempt may succeed. */
export class StorageUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StorageUnavailable";
  }
}
